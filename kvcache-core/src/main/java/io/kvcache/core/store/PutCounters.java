package io.kvcache.core.store;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;

/// What became of requests for room. Owned by the store's lock.
final class PutCounters {

    private final Tally<PutOutcome> outcomes = new Tally<>(PutOutcome.class);
    private long abandoned;

    Reserved counted(Reserved answer) {
        outcomes.add(answer.outcome());
        return answer;
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
                outcomes.of(PutOutcome.NO_ROOM),
                abandoned,
                outcomes.of(PutOutcome.FOREIGN));
    }
}
