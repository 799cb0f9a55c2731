/// Disks for simulations and tests: [io.kvcache.tiers.simulation.FaultyDevice] injects the faults and the power losses
/// of a real disk, reproducibly from a seed and on a virtual clock.
///
/// [io.kvcache.tiers.simulation.FaultRates] says how often each [io.kvcache.tiers.simulation.Fault] strikes.
/// [io.kvcache.tiers.simulation.ForwardingDevice] is the base of devices that change single calls. No class of a
/// running server uses this package; `kvcache sim` and embedders' own tests do.
///
/// May import `io.kvcache.tiers.device`, `io.kvcache.tiers.os` and the JDK only.
@NullMarked
package io.kvcache.tiers.simulation;

import org.jspecify.annotations.NullMarked;
