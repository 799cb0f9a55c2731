package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskBenchFixture.DiskRunLength;

/// How long a suite takes its time.
///
/// @param rounds times that everything is run, one benchmark after the other; an odd number has a median
/// @param iterations measured ones of a fork
/// @param iterationMillis length of each, and of the ones before that warm up
/// @param disk the same for trials of the disk suite
public record RunLength(int rounds, int iterations, int iterationMillis, DiskRunLength disk) {

    /// Enough for figures that go into a document.
    public static final RunLength FULL = new RunLength(3, 6, 400, DiskRunLength.FULL);

    /// Enough to see that something has gone wrong.
    public static final RunLength QUICK = new RunLength(1, 3, 200, DiskRunLength.QUICK);
}
