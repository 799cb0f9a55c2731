package io.kvcache.core.store;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;

/// What became of requests for room. Owned by the store's lock.
final class PutCounters {

    private final EnumCounters<PutOutcome> outcomes = new EnumCounters<>(PutOutcome.class);
    private long refused;
    private long abandoned;

    /// Counts one attempt. One without room may not be the last of its put: see [#countRefused].
    PutReservation count(PutReservation answer) {
        outcomes.add(answer.outcome());
        return answer;
    }

    /// The caller of a put is told that there is no room.
    void countRefused() {
        refused++;
    }

    void countAbandoned() {
        abandoned++;
    }

    CacheStats.Puts stats() {
        return new CacheStats.Puts(
                outcomes.total(PutOutcome.RESERVED),
                outcomes.total(PutOutcome.PRESENT),
                outcomes.total(PutOutcome.BUSY),
                outcomes.total(PutOutcome.NO_PARENT),
                refused,
                abandoned,
                outcomes.total(PutOutcome.FOREIGN),
                outcomes.total(PutOutcome.NO_ROOM));
    }
}
