package io.kvcache.tiers.movement;

import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;

/// What goes on between host memory and one tier.
///
/// @param name of the tier
/// @param cause why the tier cannot do more than it does; empty while it can do all
/// @param tier what it has done since it was last opened
/// @param opened how often it was opened
/// @param readsWaiting loads that wait to be handed to it
/// @param readsUnderWay loads on their way
/// @param writesUnderWay writes on their way
/// @param loaded blocks and objects read
/// @param loadedBytes their bytes
/// @param readFailures reads that failed, by the tier or by their checksum
/// @param cancelled loads given up because nobody waited any longer
/// @param readLatency from the wish to the sealed block
/// @param writeLatency from the first attempt to the outcome
/// @param budgetSpent share of a day's write budget
public record MoverStats(
        String name,
        TierState state,
        String cause,
        TierStats tier,
        long opened,
        int readsWaiting,
        int readsUnderWay,
        int writesUnderWay,
        long loaded,
        long loadedBytes,
        long readFailures,
        long cancelled,
        Latency readLatency,
        Latency writeLatency,
        double budgetSpent) {

    /// Percentiles in microseconds; 0 when nothing was measured.
    public record Latency(long count, long p50Micros, long p99Micros, long maxMicros) {}
}
