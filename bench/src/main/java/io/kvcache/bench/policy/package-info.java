/// JMH benchmarks of the eviction policies alone.
///
/// [HitRateMain] is the main class of a jar of its own, which has of `bench` this package, baseline,
/// replay and trace. These import no others.
@NullMarked
package io.kvcache.bench.policy;

import org.jspecify.annotations.NullMarked;
