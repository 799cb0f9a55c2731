/// The production store driven tick by tick from one thread, over disks that fail and a clock that only
/// the simulation moves, with a check of everything after each step.
///
/// [io.kvcache.bench.sim.Simulation] is one run of one seed, [io.kvcache.bench.sim.SimSuite] runs many,
/// each twice.
@NullMarked
package io.kvcache.bench.sim;

import org.jspecify.annotations.NullMarked;
