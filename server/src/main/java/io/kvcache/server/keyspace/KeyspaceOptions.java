package io.kvcache.server.keyspace;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// How a keyspace behaves where there is a choice.
///
/// @param promise how long a positive answer to "does it exist" protects the value; zero for not at all
/// @param promiseBytes most bytes that are protected so at one time; 0 for no protection
/// @param arrival how long a value that is on disk may take to arrive; zero in a store without disks
/// @param quotaBytes most bytes of the store that its values may take, in memory or on disk; 0 for no limit of its own
/// @param bounds how large keys and values may be, and how much may be on its way
/// @param ahead whether chunks that a reader is likely to take next are brought from disk
/// @param prefill null for clients that are told of all that is here
public record KeyspaceOptions(
        Duration promise,
        long promiseBytes,
        Duration arrival,
        long quotaBytes,
        Bounds bounds,
        boolean ahead,
        @Nullable PrefillTerms prefill) {

    /// Part of host memory, and of a quota, that promises may hold.
    private static final int PROMISE_SHARE = 2;

    public KeyspaceOptions {
        if (promise.isNegative() || promise.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("promise is " + promise + "; it takes 0 s to 1 min");
        }
        if (arrival.isNegative()) {
            throw new IllegalArgumentException("arrival is " + arrival + "; it takes 0 s and up");
        }
        if (quotaBytes < 0) {
            throw new IllegalArgumentException("quotaBytes is " + quotaBytes + "; it takes 0 and up");
        }
        if (promiseBytes < 0) {
            throw new IllegalArgumentException("promiseBytes is " + promiseBytes + "; it takes 0 and up");
        }
    }

    /// One that brings nothing ahead.
    public KeyspaceOptions(Duration promise, long promiseBytes, Duration arrival, long quotaBytes, Bounds bounds) {
        this(promise, promiseBytes, arrival, quotaBytes, bounds, false, null);
    }

    /// Bytes that promises may hold, which leave room within the quota, if there is one.
    long promisedAtMost() {
        return quotaBytes == 0 ? promiseBytes : Math.min(promiseBytes, quotaBytes / PROMISE_SHARE);
    }

    /// Two seconds, and at most half of the host memory; no disks, no quota.
    public static KeyspaceOptions defaults(long hostBytes) {
        return new KeyspaceOptions(Duration.ofSeconds(2), hostBytes / PROMISE_SHARE, Duration.ZERO, 0, Bounds.none());
    }
}
