package io.kvcache.core.time;

import java.time.Duration;

/// Converts the timeouts that callers pass into the nanoseconds that the implementation counts in.
public final class Timeouts {

    private Timeouts() {}

    /// Checks a timeout that does not matter, because nothing has to be waited for.
    ///
    /// @throws IllegalArgumentException when it is negative
    public static void requireNotNegative(Duration timeout) {
        var _ = toNanos(timeout);
    }

    /// Returns a timeout in nanoseconds. A timeout beyond 292 years counts as 292 years.
    ///
    /// @throws IllegalArgumentException when it is negative
    public static long toNanos(Duration timeout) {
        return toNanos("timeout", timeout);
    }

    /// Returns a duration in nanoseconds. A duration beyond 292 years counts as 292 years.
    ///
    /// @param name of the parameter, for the error message
    /// @throws IllegalArgumentException when it is negative
    public static long toNanos(String name, Duration duration) {
        long seconds = duration.getSeconds();
        if (seconds < 0) {
            throw new IllegalArgumentException(name + " is " + duration + "; it takes 0 and up");
        }
        return seconds < Long.MAX_VALUE / 1_000_000_000L
                ? seconds * 1_000_000_000L + duration.getNano()
                : Long.MAX_VALUE;
    }
}
