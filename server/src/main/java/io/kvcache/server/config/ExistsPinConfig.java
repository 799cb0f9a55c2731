package io.kvcache.server.config;

import java.time.Duration;

/// How long a positive answer to EXISTS protects the value from eviction.
///
/// @param duration zero for not at all
/// @param percent of host memory that may be protected so at one time, all tenants together; zero for none
public record ExistsPinConfig(Duration duration, int percent) {

    private static final Duration MAX_DURATION = Duration.ofMinutes(1);

    public ExistsPinConfig {
        if (duration.isNegative() || duration.compareTo(MAX_DURATION) > 0) {
            throw new IllegalArgumentException("promise.time is " + duration.toMillis() + "ms; it takes 0ms to 60s");
        }
        if (percent < 0 || percent > 90) {
            throw new IllegalArgumentException("promise.percent is " + percent + "; it takes 0 to 90");
        }
    }

    /// Two seconds, and half: a client may have asked for so much that it has not fetched yet, and what is not asked
    /// for is
    /// evicted first in any case.
    public static ExistsPinConfig defaults() {
        return new ExistsPinConfig(Duration.ofSeconds(2), 50);
    }
}
