package io.kvcache.transport.remote;

import io.kvcache.transport.wire.Secret;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// How a remote cache behaves; see [RemoteKvCacheBuilder] for the meanings and limits.
///
/// @param fabric transports of UCX by which blocks are read one-sided, empty for all; null for none
/// @param failbackAfter how long until servers before the one that is used are asked again; zero for
///     never
record RemoteOptions(
        @Nullable Secret secret,
        String tenant,
        int connections,
        Duration requestTimeout,
        Duration lease,
        long memoryBytes,
        boolean checked,
        boolean strict,
        SharedMemoryMode sharedMemory,
        long stagingBytes,
        @Nullable String fabric,
        Duration failbackAfter) {

    long requestTimeoutNanos() {
        return requestTimeout.toNanos();
    }

    /// The request time-out beside a time that the caller allows.
    long totalTimeoutNanos(long timeoutNanos) {
        return Math.min(timeoutNanos, Long.MAX_VALUE / 4) + requestTimeoutNanos();
    }
}
