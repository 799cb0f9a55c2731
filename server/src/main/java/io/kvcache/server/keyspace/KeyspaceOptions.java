package io.kvcache.server.keyspace;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.server.quota.ByteBudget;
import java.time.Duration;
import java.util.function.LongToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// How a keyspace behaves where there is a choice.
///
/// @param existsPin how long a positive answer to "does it exist" protects the value; zero for not at all
/// @param existsPinBytes most bytes that are protected so at one time; 0 for no protection
/// @param fetchTimeout how long a value that is on disk may take to arrive; zero in a store without disks
/// @param quotaBytes most bytes of the store that its values may take, in memory or on disk; 0 for no limit of its
///     own
/// @param keyspaceLimits how large keys and values may be, and how much may be on its way
/// @param prefetch whether chunks that a reader is likely to take next are brought from disk
/// @param recompute null for clients that are told of all that is here
/// @param slotOwnership says which values count as absent, as another server may have later ones; null for none
public record KeyspaceOptions(
        Duration existsPin,
        long existsPinBytes,
        Duration fetchTimeout,
        long quotaBytes,
        KeyspaceLimits keyspaceLimits,
        boolean prefetch,
        @Nullable RecomputeEstimator recompute,
        @Nullable HashSlotOwnership slotOwnership) {

    /// Part of host memory, and of a quota, that pins may hold.
    private static final int PIN_FRACTION = 2;

    public KeyspaceOptions {
        if (existsPin.isNegative() || existsPin.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("existsPin is " + existsPin + "; it takes 0 s to 1 min");
        }
        if (fetchTimeout.isNegative()) {
            throw new IllegalArgumentException("fetchTimeout is " + fetchTimeout + "; it takes 0 s and up");
        }
        if (quotaBytes < 0) {
            throw new IllegalArgumentException("quotaBytes is " + quotaBytes + "; it takes 0 and up");
        }
        if (existsPinBytes < 0) {
            throw new IllegalArgumentException("existsPinBytes is " + existsPinBytes + "; it takes 0 and up");
        }
    }

    /// One that brings nothing ahead.
    public KeyspaceOptions(
            Duration existsPin,
            long existsPinBytes,
            Duration fetchTimeout,
            long quotaBytes,
            KeyspaceLimits keyspaceLimits) {
        this(existsPin, existsPinBytes, fetchTimeout, quotaBytes, keyspaceLimits, false, null, null);
    }

    /// Bytes that pins may hold, which leave room within the quota, if there is one.
    long maxPinnedBytes() {
        return quotaBytes == 0 ? existsPinBytes : Math.min(existsPinBytes, quotaBytes / PIN_FRACTION);
    }

    /// Two seconds, and at most half of the host memory; no disks, no quota.
    public static KeyspaceOptions defaults(long hostBytes) {
        return new KeyspaceOptions(
                Duration.ofSeconds(2), hostBytes / PIN_FRACTION, Duration.ZERO, 0, KeyspaceLimits.unlimited());
    }

    /// Estimates the time to compute the chunks of a sequence, and to read them from disk.
    ///
    /// @param cost of computing tokens
    /// @param chunkTokens tokens of a chunk
    /// @param deadline longest that reading may take
    /// @param readNanos by now, for so many bytes; 0 while nothing is known
    public record RecomputeEstimator(
            PrefillCost cost, int chunkTokens, Duration deadline, LongToDoubleFunction readNanos) {

        /// Returns whether chunks take less time to compute than to read, or would come too late.
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

    /// How large keys and values may be, and how many bytes of values may be on their way in and out at one time.
    ///
    /// @param keyBytes longest key, 1 to [Keyspace#MAX_KEY_BYTES]
    /// @param valueBytes largest value, 1 to [Keyspace#MAX_VALUE_BYTES]
    /// @param incoming values that are being written
    /// @param outgoing values that are being read, and hold their memory until they are sent
    public record KeyspaceLimits(int keyBytes, long valueBytes, ByteBudget incoming, ByteBudget outgoing) {

        /// As large as the store takes them.
        public static KeyspaceLimits unlimited() {
            return new KeyspaceLimits(
                    Keyspace.MAX_KEY_BYTES, Keyspace.MAX_VALUE_BYTES, ByteBudget.unlimited(), ByteBudget.unlimited());
        }
    }
}
