package io.kvcache.server.config;

import java.time.Duration;

/// How long a positive answer to EXISTS protects the value from eviction.
///
/// @param time zero for not at all
/// @param percent of host memory that may be protected so at one time, all tenants together; zero for none
public record PromiseConfig(Duration time, int percent) {

    private static final Duration LONGEST = Duration.ofMinutes(1);

    public PromiseConfig {
        if (time.isNegative() || time.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException("promise.time is " + time.toMillis() + "ms; it takes 0ms to 60s");
        }
        if (percent < 0 || percent > 90) {
            throw new IllegalArgumentException("promise.percent is " + percent + "; it takes 0 to 90");
        }
    }

    /// Two seconds, and half: a client may have asked for so much that it has not fetched yet, and what is not asked
    /// for is
    /// evicted first in any case.
    public static PromiseConfig defaults() {
        return new PromiseConfig(Duration.ofSeconds(2), 50);
    }
}
