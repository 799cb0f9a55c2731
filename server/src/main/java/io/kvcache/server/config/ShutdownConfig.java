package io.kvcache.server.config;

import java.time.Duration;

/// How a server goes down.
///
/// @param delay how long the server reports not ready and still serves, so that load balancers send clients elsewhere
/// @param drain how long it waits after that for requests that have begun and for the disks, together
public record ShutdownConfig(Duration delay, Duration drain) {

    private static final Duration MAX_DURATION = Duration.ofMinutes(10);

    public ShutdownConfig {
        validate("shutdown.delay", delay);
        validate("shutdown.drain", drain);
    }

    private static void validate(String setting, Duration value) {
        if (value.isNegative() || value.compareTo(MAX_DURATION) > 0) {
            throw new IllegalArgumentException(setting + " is " + value.toSeconds() + "s; it takes 0s to 600s");
        }
    }

    /// No delay, and what systemd and Kubernetes leave of their 30 seconds.
    public static ShutdownConfig defaults() {
        return new ShutdownConfig(Duration.ZERO, Duration.ofSeconds(25));
    }

    static ShutdownConfig read(Settings from, ShutdownConfig defaultValue) {
        Duration delay = from.get("shutdown.delay", defaultValue.delay(), SettingParsers::parseDuration);
        Duration drain = from.get("shutdown.drain", defaultValue.drain(), SettingParsers::parseDuration);
        return from.getValid(defaultValue, () -> new ShutdownConfig(delay, drain));
    }

    /// Both together.
    public Duration totalTime() {
        return delay.plus(drain);
    }
}
