package io.kvcache.server.keyspace;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// How a keyspace behaves where there is a choice.
///
/// @param existsPin how long a positive answer to "does it exist" protects the value; zero for not at all
/// @param existsPinBytes most bytes that are protected so at one time; 0 for no protection
/// @param fetchTimeout how long a value that is on disk may take to arrive; zero in a store without disks
/// @param quotaBytes most bytes of the store that its values may take, in memory or on disk; 0 for no limit of its own
/// @param keyspaceLimits how large keys and values may be, and how much may be on its way
/// @param prefetch whether chunks that a reader is likely to take next are brought from disk
/// @param recompute null for clients that are told of all that is here
public record KeyspaceOptions(
        Duration existsPin,
        long existsPinBytes,
        Duration fetchTimeout,
        long quotaBytes,
        KeyspaceLimits keyspaceLimits,
        boolean prefetch,
        @Nullable RecomputeEstimator recompute) {

    /// Part of host memory, and of a quota, that promises may hold.
    private static final int PIN_FRACTION = 2;

    public KeyspaceOptions {
        if (existsPin.isNegative() || existsPin.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("promise is " + existsPin + "; it takes 0 s to 1 min");
        }
        if (fetchTimeout.isNegative()) {
            throw new IllegalArgumentException("arrival is " + fetchTimeout + "; it takes 0 s and up");
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
            Duration promise, long existsPinBytes, Duration arrival, long quotaBytes, KeyspaceLimits keyspaceLimits) {
        this(promise, existsPinBytes, arrival, quotaBytes, keyspaceLimits, false, null);
    }

    /// Bytes that promises may hold, which leave room within the quota, if there is one.
    long maxPinnedBytes() {
        return quotaBytes == 0 ? existsPinBytes : Math.min(existsPinBytes, quotaBytes / PIN_FRACTION);
    }

    /// Two seconds, and at most half of the host memory; no disks, no quota.
    public static KeyspaceOptions defaults(long hostBytes) {
        return new KeyspaceOptions(
                Duration.ofSeconds(2), hostBytes / PIN_FRACTION, Duration.ZERO, 0, KeyspaceLimits.unlimited());
    }
}
