package io.kvcache.bench.sim;

import java.util.SplittableRandom;

/// What is around a disk.
///
/// @param memory of logs
/// @param random of the faults
record SimWorld(SimClock clock, SimMemory memory, SplittableRandom random, RareCounts rare) {}
