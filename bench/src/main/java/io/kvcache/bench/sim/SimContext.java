package io.kvcache.bench.sim;

import java.util.SplittableRandom;

/// What is around a disk.
///
/// @param memory of logs
/// @param random of the faults
record SimContext(SimClock clock, SimMemory memory, SplittableRandom random, CoverageCounters coverage) {}
