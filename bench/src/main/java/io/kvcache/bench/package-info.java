/// Planning and measurement: trace replay, the demo, JMH benchmarks, and a command line that adds them to the
/// server's.
///
/// Stands on top of everything; nothing may import it. JMH is used nowhere else.
@NullMarked
package io.kvcache.bench;

import org.jspecify.annotations.NullMarked;
