package io.kvcache.bench.transport;

/// What came of moving blocks for a while.
///
/// @param gigabytes a second, of 10^9 bytes
/// @param p50Micros half of the blocks took less
/// @param p99Micros ninety-nine of a hundred took less
/// @param count how many were made
public record TransferStats(double gigabytes, double p50Micros, double p99Micros, long count) {}
