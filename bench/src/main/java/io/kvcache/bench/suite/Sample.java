package io.kvcache.bench.suite;

/// What one fork of a benchmark gave.
///
/// @param nanos median time of an invocation, in one thread
/// @param allocatedBytes heap bytes allocated in an invocation, on average
public record Sample(double nanos, double allocatedBytes) {}
