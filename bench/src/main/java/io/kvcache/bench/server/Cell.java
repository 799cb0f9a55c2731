package io.kvcache.bench.server;

/// One load on both servers: medians over the rounds, and of the ratio the median of each round's.
///
/// @param ratio ours by theirs, in requests a second
public record Cell(Load load, LoadResult ours, LoadResult theirs, double ratio) {

    /// Bytes of values a second, in GB.
    public static double gigabytes(Load load, LoadResult result) {
        return result.perSecond() * load.bytes() / 1e9;
    }
}
