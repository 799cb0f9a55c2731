package io.kvcache.core.stats;

import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;

/// Transfers between host memory and one tier.
///
/// @param name name of the tier
/// @param cause why the tier cannot do more than it does; empty while it can do all
/// @param tier counters of the tier since it was last opened
/// @param opened how often it was opened
/// @param readsWaiting loads that wait to be handed to it
/// @param readsUnderWay loads on their way
/// @param writesUnderWay writes on their way
/// @param loaded blocks and objects read
/// @param loadedBytes their bytes
/// @param partsRead parts of blocks read where they lie
/// @param partBytes their bytes
/// @param readFailures reads that failed, by the tier or by their checksum
/// @param cancelled loads given up because no caller waited any longer
/// @param readLatency from the wish to the sealed block
/// @param writeLatency from the first attempt to the outcome
/// @param budgetSpent share of a day's write budget
public record TierTransferStats(
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
        long partsRead,
        long partBytes,
        long readFailures,
        long cancelled,
        Latency readLatency,
        Latency writeLatency,
        double budgetSpent) {

    /// Returns what is not as it should be, in words that begin with the tier's name; empty while it serves.
    public String problem() {
        return state == TierState.SERVING
                ? ""
                : name + " is " + state.name().toLowerCase(Locale.ROOT).replace('_', ' ')
                        + (cause.isEmpty() ? "" : ": " + cause);
    }

    /// Microseconds since the store was opened; 0 when nothing was measured.
    ///
    /// @param within how many took no longer than each of [#BOUNDS_MICROS], and longer than the one before; the
    /// last of all longer ones
    public record Latency(
            long count, long sumMicros, long p50Micros, long p99Micros, long maxMicros, List<Long> within) {

        /// Upper bounds of the buckets of `within`: 1, 2, 5, 10 from 10 µs to 50 s.
        public static final List<Long> BOUNDS_MICROS = LongStream.iterate(10, decade -> decade * 10)
                .limit(7)
                .flatMap(decade -> LongStream.of(decade, 2 * decade, 5 * decade))
                .boxed()
                .toList();

        public Latency {
            within = List.copyOf(within);
        }
    }
}
