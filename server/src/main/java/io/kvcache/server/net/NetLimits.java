package io.kvcache.server.net;

import java.time.Duration;

/// What connections may take.
///
/// @param connections how many at one time
/// @param idle how long one may say nothing between requests; zero for ever
/// @param stall how long a begun request may go without a 32 KiB step, or a reply unread
/// @param authenticate how long a client may take to say who it is, where a listener asks
public record NetLimits(int connections, Duration idle, Duration stall, Duration authenticate) {

    private static final Duration USUAL_AUTHENTICATE = Duration.ofSeconds(5);
    private static final Duration LONGEST_AUTHENTICATE = Duration.ofMinutes(10);

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

    /// Ten thousand, never idle as with Redis, half a minute.
    public static NetLimits defaults() {
        return new NetLimits(10_000, Duration.ZERO, Duration.ofSeconds(30));
    }
}
