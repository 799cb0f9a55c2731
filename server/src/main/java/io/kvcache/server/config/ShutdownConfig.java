package io.kvcache.server.config;

import java.time.Duration;

/// How a server goes down.
///
/// @param delay how long the server reports not ready and still serves, so that load balancers send clients elsewhere
/// @param drain how long it waits after that for requests that have begun and for the disks, together
public record ShutdownConfig(Duration delay, Duration drain) {

    private static final Duration LONGEST = Duration.ofMinutes(10);

    public ShutdownConfig {
        check("shutdown.delay", delay);
        check("shutdown.drain", drain);
    }

    private static void check(String setting, Duration value) {
        if (value.isNegative() || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(setting + " is " + value.toSeconds() + "s; it takes 0s to 600s");
        }
    }

    /// No delay, and what systemd and Kubernetes leave of their 30 seconds.
    public static ShutdownConfig defaults() {
        return new ShutdownConfig(Duration.ZERO, Duration.ofSeconds(25));
    }

    static ShutdownConfig read(Settings from, ShutdownConfig otherwise) {
        Duration delay = from.get("shutdown.delay", otherwise.delay(), Values::duration);
        Duration drain = from.get("shutdown.drain", otherwise.drain(), Values::duration);
        return from.checked(otherwise, () -> new ShutdownConfig(delay, drain));
    }

    /// Both together.
    public Duration longest() {
        return delay.plus(drain);
    }
}
