/// Benchmarks, one class a question, and the stores they run on.
///
/// JMH makes a subclass of every state and benchmark class, so these are open and public as no other class here is.
/// All take the sample-time mode: on a shared machine the median of single invocations says what the code costs, a
/// mean says what the neighbours do. An invocation is a batch where one operation is too short to be timed, and long
/// enough to hold its share of what happens now and then.
@NullMarked
package io.kvcache.bench.jmh;

import org.jspecify.annotations.NullMarked;
