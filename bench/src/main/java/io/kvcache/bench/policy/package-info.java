/// JMH benchmarks of the eviction policies alone. [HitRateMain] is the main class of a jar of its own, which has no
/// other
/// package of `bench` than baseline, replay and trace; this one may import no others.
@NullMarked
package io.kvcache.bench.policy;

import org.jspecify.annotations.NullMarked;
