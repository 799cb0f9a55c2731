/// Disks for simulations and tests: [io.kvcache.tiers.simulation.FaultyDevice] injects the faults and the power losses
/// of a real disk, reproducibly from a seed and on a virtual clock.
///
/// [io.kvcache.tiers.simulation.FaultRates] says how often each fault strikes. Tests and `./kvcache sim` use this.
///
/// May import `io.kvcache.tiers.device`, `io.kvcache.tiers.os` and the JDK only.
@NullMarked
package io.kvcache.tiers.simulation;

import org.jspecify.annotations.NullMarked;
