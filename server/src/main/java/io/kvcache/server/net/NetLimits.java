package io.kvcache.server.net;

import java.time.Duration;

/// What connections may take.
///
/// @param connections how many at one time
/// @param idle how long one may say nothing between requests; zero for ever
/// @param stall how long a begun request may go without a 32 KiB step, or a reply unread
public record NetLimits(int connections, Duration idle, Duration stall) {

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
    }

    /// Ten thousand, never idle as with Redis, half a minute.
    public static NetLimits defaults() {
        return new NetLimits(10_000, Duration.ZERO, Duration.ofSeconds(30));
    }
}
