package io.kvcache.server.net;

import java.time.Duration;

/// What connections may take.
///
/// @param connections how many at one time
/// @param idle how long one may say nothing between requests; zero for ever
/// @param stall over how long a request that has begun may come slower than [#LEAST_RATE_BYTES] a second, and how long
///     a reply may go unread
/// @param authenticate how long a client may take to say who it is, where a listener asks
public record NetLimits(int connections, Duration idle, Duration stall, Duration authenticate) {

    private static final Duration USUAL_AUTHENTICATE = Duration.ofSeconds(5);
    private static final Duration LONGEST_AUTHENTICATE = Duration.ofMinutes(10);

    /// Bytes a second that a request has to bring while it is not complete: little enough for a slow link that
    /// many uploads share, enough that a trickle holds no memory for long.
    public static final int LEAST_RATE_BYTES = 64 << 10;

    /// Connections that a server may be told to take.
    public static final int MOST_CONNECTIONS = 1_000_000;

    public NetLimits {
        if (connections < 1 || connections > MOST_CONNECTIONS) {
            throw new IllegalArgumentException(
                    "limits.connections is " + connections + "; it takes 1 to " + MOST_CONNECTIONS);
        }
        if (idle.isNegative()) {
            throw new IllegalArgumentException("limits.idle is " + idle + "; it takes 0 and up");
        }
        if (stall.compareTo(Duration.ofSeconds(1)) < 0) {
            throw new IllegalArgumentException("limits.stall is " + stall.toMillis() + "ms; it takes 1s and up");
        }
        if (authenticate.compareTo(Duration.ofSeconds(1)) < 0 || authenticate.compareTo(LONGEST_AUTHENTICATE) > 0) {
            throw new IllegalArgumentException(
                    "limits.authenticate is " + authenticate.toMillis() + "ms; it takes 1s to 10m");
        }
    }

    /// With the usual time to say who one is.
    public NetLimits(int connections, Duration idle, Duration stall) {
        this(connections, idle, stall, USUAL_AUTHENTICATE);
    }

    /// The same with another number of connections.
    public NetLimits withConnections(int other) {
        return new NetLimits(other, idle, stall, authenticate);
    }

    /// Bytes that a request brings at least in the time of [#stall()].
    long leastBytes() {
        return LEAST_RATE_BYTES * stall.toMillis() / 1000;
    }

    /// Ten thousand, never idle as with Redis, half a minute.
    public static NetLimits defaults() {
        return new NetLimits(10_000, Duration.ZERO, Duration.ofSeconds(30));
    }
}
