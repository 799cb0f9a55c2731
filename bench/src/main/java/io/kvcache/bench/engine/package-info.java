/// Inference engines with and without a store before their prefill: the demo that shows both side by
/// side, and the pairs that `bench engines` takes its figures from. The models are of random weights,
/// unless the user names one.
@NullMarked
package io.kvcache.bench.engine;

import org.jspecify.annotations.NullMarked;
