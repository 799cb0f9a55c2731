package io.kvcache.tiers;

import io.kvcache.core.spi.Clock;

/// A time-out with the moment at which it began. What is begun on a request's behalf later shares the request's
/// deadline, and does not begin a time-out of its own.
///
/// @param start in the clock's nanoseconds
/// @param timeoutNanos from then on
record Deadline(Clock clock, long start, long timeoutNanos) {

    /// A time-out that begins now.
    static Deadline after(Clock clock, long timeoutNanos) {
        return new Deadline(clock, clock.nanos(), timeoutNanos);
    }

    /// Nanoseconds that are left; 0 or less once the time is over.
    long remainingNanos() {
        return timeoutNanos - (clock.nanos() - start);
    }

    boolean isExpired() {
        return remainingNanos() <= 0;
    }
}
