package io.kvcache.bench.gpu;

/// One way to move bytes, and the bare copy that it is held against.
///
/// @param bytes that each moves
/// @param minRatio ratio that is asked for; 0 when none is
record CopyBenchmark(String name, long bytes, Runnable copy, Runnable baseline, double minRatio) {}
