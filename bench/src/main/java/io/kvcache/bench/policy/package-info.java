/// JMH benchmarks of the eviction policies alone.
///
/// [HitRateMain] is the main class of a jar of its own, which has this package of `bench`, and
/// `baseline`, `replay` and `trace` of `planner`. These import no others.
@NullMarked
package io.kvcache.bench.policy;

import org.jspecify.annotations.NullMarked;
