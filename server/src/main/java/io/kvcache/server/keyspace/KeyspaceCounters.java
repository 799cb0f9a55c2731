package io.kvcache.server.keyspace;

import java.util.concurrent.atomic.LongAdder;

/// What a keyspace counts.
final class KeyspaceCounters {

    final LongAdder hits = new LongAdder();
    final LongAdder absent = new LongAdder();
    final LongAdder expired = new LongAdder();
    final LongAdder halved = new LongAdder();
    final LongAdder stored = new LongAdder();
    final LongAdder joined = new LongAdder();
    final LongAdder refused = new LongAdder();
    final LongAdder deleted = new LongAdder();
    final LongAdder sentBytes = new LongAdder();
    final LongAdder receivedBytes = new LongAdder();

    KeyspaceStats stats(KeyIndex index, Promises promises, KeyspaceStats.Usage usage) {
        return new KeyspaceStats(
                index.count(),
                index.timedCount(),
                new KeyspaceStats.Reads(hits.sum(), absent.sum(), expired.sum(), halved.sum()),
                new KeyspaceStats.Writes(stored.sum(), joined.sum(), refused.sum(), deleted.sum()),
                new KeyspaceStats.Promised(promises.given(), promises.bare(), promises.broken(), promises.heldBytes()),
                usage,
                new KeyspaceStats.Traffic(sentBytes.sum(), receivedBytes.sum()));
    }
}
