package io.kvcache.bench.server;

/// What came of a load.
///
/// @param count requests
/// @param perSecond requests of all connections together
/// @param p50Micros half of the requests took less
/// @param p99Micros ninety-nine of a hundred took less
public record LoadResult(long count, double perSecond, double p50Micros, double p99Micros) {

    /// Bytes of values a second, in GB.
    double gigabytesPerSecond(int bytes) {
        return perSecond * bytes / 1e9;
    }
}
