/// JMH benchmarks of the eviction policies alone.
@NullMarked
package io.kvcache.bench.policy;

import org.jspecify.annotations.NullMarked;
