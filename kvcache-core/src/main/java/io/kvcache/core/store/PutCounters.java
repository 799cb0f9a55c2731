package io.kvcache.core.store;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;

/// What became of requests for room. Owned by the store's lock.
final class PutCounters {

    private final Tally<PutOutcome> outcomes = new Tally<>(PutOutcome.class);
    private long refused;
    private long abandoned;

    /// Counts one attempt. One without room may not be the last of its put: see [#countRefused].
    Reserved counted(Reserved answer) {
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
                outcomes.of(PutOutcome.RESERVED),
                outcomes.of(PutOutcome.PRESENT),
                outcomes.of(PutOutcome.BUSY),
                outcomes.of(PutOutcome.NO_PARENT),
                refused,
                abandoned,
                outcomes.of(PutOutcome.FOREIGN),
                outcomes.of(PutOutcome.NO_ROOM));
    }
}
