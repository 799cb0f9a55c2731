package io.kvcache.server.keyspace;

import io.kvcache.core.cost.PrefillCost;
import java.time.Duration;
import java.util.function.LongToDoubleFunction;

/// What it takes to compute the chunks of a sequence, and to read them from disk.
///
/// @param cost of computing tokens
/// @param chunkTokens tokens of a chunk
/// @param deadline longest that reading may take
/// @param readNanos by now, for so many bytes; 0 while nothing is known
public record RecomputeEstimator(PrefillCost cost, int chunkTokens, Duration deadline, LongToDoubleFunction readNanos) {

    /// Whether chunks take less time to compute than to read, or would come too late.
    ///
    /// @param bytes of all of them
    /// @param from place of the first in its sequence, by number of chunks
    /// @param to that of the last, and one
    boolean isRecomputeFaster(long bytes, int from, int to) {
        double reading = readNanos.applyAsDouble(bytes);
        double computing = 1e9 * cost.seconds((long) from * chunkTokens, (long) to * chunkTokens);
        return reading > 0 && (reading >= computing || reading > deadline.toNanos());
    }
}
