/// Traces that a running server wrote of its use, replayed over stores of other sizes and policies.
@NullMarked
package io.kvcache.bench.capture;

import org.jspecify.annotations.NullMarked;
