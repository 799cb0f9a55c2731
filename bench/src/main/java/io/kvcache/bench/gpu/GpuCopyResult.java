package io.kvcache.bench.gpu;

/// What was measured of one way to move bytes: medians over the rounds, and of the ratio the median of
/// each round's.
///
/// @param name of the way
/// @param gigabytes a second, 10^9 bytes
/// @param baselineGigabytes what a bare copy of the same bytes made in the same round
/// @param minRatio ratio that is asked for; 0 when none is
/// @param registered whether the driver let host memory be registered
public record GpuCopyResult(
        String name, double gigabytes, double baselineGigabytes, double ratio, double minRatio, boolean registered) {

    /// Whether it is as fast as is asked for.
    public boolean meetsMinRatio() {
        return ratio >= minRatio;
    }
}
