/// Tests of the benchmarks of policies.
@NullMarked
package io.kvcache.bench.policy;

import org.jspecify.annotations.NullMarked;
