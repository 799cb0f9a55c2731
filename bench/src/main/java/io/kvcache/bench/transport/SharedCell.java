package io.kvcache.bench.transport;

/// One use of shared memory, beside a bare copy of as many bytes.
///
/// @param ratio median of the rounds' ratios of bytes a second
/// @param serverMicros processor time of the server's process for each block
public record SharedCell(SharedUse use, Cargo cargo, Moves ours, Moves bare, double ratio, double serverMicros) {}
