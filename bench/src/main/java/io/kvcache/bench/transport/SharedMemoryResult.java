package io.kvcache.bench.transport;

/// One use of shared memory, beside a bare copy of as many bytes.
///
/// @param ratio median of the rounds' ratios of bytes a second
/// @param serverMicros processor time of the server's process for each block
public record SharedMemoryResult(
        SharedMemoryAccess use,
        TransferSpec cargo,
        TransferStats ours,
        TransferStats bare,
        double ratio,
        double serverMicros) {}
