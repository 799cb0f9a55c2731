package io.kvcache.bench.gpu;

/// One way to move bytes, and the bare copy that it is held against.
///
/// @param bytes that each moves
/// @param least ratio that is asked for; 0 when none is
record GpuWay(String name, long bytes, Runnable way, Runnable bare, double least) {}
