/// Measurement: trace replay, the demo, JMH benchmarks, and the command line that runs them.
///
/// Stands on top of everything; nothing may import it. JMH is used nowhere else.
@NullMarked
package io.kvcache.bench;

import org.jspecify.annotations.NullMarked;
