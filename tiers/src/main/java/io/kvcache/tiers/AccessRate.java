package io.kvcache.tiers;

import io.kvcache.core.time.Clock;
import java.util.function.LongSupplier;

/// How many uses a store sees in a time, if it goes on as lately: since the last question but one, but for
/// ten seconds at least where the store is open for so long.
///
/// **Threads.** Any.
final class AccessRate {

    private static final long PERIOD_NANOS = 10_000_000_000L;

    private final Clock clock;
    private final LongSupplier uses;
    private Reading start;
    private Reading latest;

    private record Reading(long nanos, long uses) {}

    /// @param uses seen so far
    AccessRate(Clock clock, LongSupplier uses) {
        this.clock = clock;
        this.uses = uses;
        start = new Reading(clock.nanos(), uses.getAsLong());
        latest = start;
    }

    /// Uses to come within a time; none within no time, whatever is measured.
    synchronized long expectedWithin(long nanos) {
        if (nanos == 0) {
            return 0;
        }
        Reading now = new Reading(clock.nanos(), uses.getAsLong());
        if (now.nanos - latest.nanos >= PERIOD_NANOS) {
            start = latest;
            latest = now;
        }
        long time = now.nanos - start.nanos;
        return time <= 0 ? 0 : (long) ((double) nanos / time * (now.uses - start.uses));
    }
}
