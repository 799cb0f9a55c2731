package io.kvcache.bench.transport;

/// One cargo, moved by both.
///
/// @param ratio median of the rounds' ratios of ours to the other's
public record TransportResult(
        TransferSpec cargo,
        TransferStats ours,
        TransferStats bare,
        double ratio,
        ResourceUsage cost,
        ResourceUsage bareCost) {}
