package io.kvcache.server.net;

import java.time.Duration;

/// The limits of connections.
///
/// @param connections how many at one time
/// @param idleTimeout how long one may say nothing between requests; zero for ever
/// @param stallTimeout over how long a request that has begun may come slower than [#MIN_RATE_BYTES] a second, and
///     how long a reply may go unread
/// @param authTimeout how long a client may take to authenticate, where a listener requires it
public record NetLimits(int connections, Duration idleTimeout, Duration stallTimeout, Duration authTimeout) {

    private static final Duration DEFAULT_AUTH_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration MAX_AUTH_TIMEOUT = Duration.ofMinutes(10);

    /// Bytes a second that a request has to bring while it is not complete: little enough for a slow link that
    /// many uploads share, enough that a trickle holds no memory for long.
    public static final int MIN_RATE_BYTES = 64 << 10;

    /// Connections that a server may be told to take.
    public static final int MAX_CONNECTIONS = 1_000_000;

    public NetLimits {
        if (connections < 1 || connections > MAX_CONNECTIONS) {
            throw new IllegalArgumentException(
                    "limits.connections is " + connections + "; it takes 1 to " + MAX_CONNECTIONS);
        }
        if (idleTimeout.isNegative()) {
            throw new IllegalArgumentException("limits.idle is " + idleTimeout + "; it takes 0 and up");
        }
        if (stallTimeout.compareTo(Duration.ofSeconds(1)) < 0) {
            throw new IllegalArgumentException("limits.stall is " + stallTimeout.toMillis() + "ms; it takes 1s and up");
        }
        if (authTimeout.compareTo(Duration.ofSeconds(1)) < 0 || authTimeout.compareTo(MAX_AUTH_TIMEOUT) > 0) {
            throw new IllegalArgumentException(
                    "limits.authenticate is " + authTimeout.toMillis() + "ms; it takes 1s to 10m");
        }
    }

    /// With the default time to authenticate.
    public NetLimits(int connections, Duration idle, Duration stall) {
        this(connections, idle, stall, DEFAULT_AUTH_TIMEOUT);
    }

    /// The same with another number of connections.
    public NetLimits withConnections(int other) {
        return new NetLimits(other, idleTimeout, stallTimeout, authTimeout);
    }

    /// Bytes that a request brings at least in the time of [#stallTimeout()].
    long minBytesPerStall() {
        return MIN_RATE_BYTES * stallTimeout.toMillis() / 1000;
    }

    /// Ten thousand, never idle as with Redis, half a minute.
    public static NetLimits defaults() {
        return new NetLimits(10_000, Duration.ZERO, Duration.ofSeconds(30));
    }
}
