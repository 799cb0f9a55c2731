/// Suites of JMH benchmarks, and the comparison of two builds that `kvcache bench pairs` makes.
@NullMarked
package io.kvcache.bench.suite;

import org.jspecify.annotations.NullMarked;
