package io.kvcache.server.keyspace;

import io.kvcache.server.miss.MissCauses;
import java.util.concurrent.atomic.LongAdder;

/// What a keyspace counts.
final class KeyspaceCounters {

    final LongAdder hits = new LongAdder();
    final LongAdder fromDisk = new LongAdder();
    final LongAdder absent = new LongAdder();
    final LongAdder missedEvicted = new LongAdder();
    final LongAdder missedQuota = new LongAdder();
    final LongAdder missedDeleted = new LongAdder();
    final LongAdder evicted = new LongAdder();
    final LongAdder expired = new LongAdder();
    final LongAdder otherHalfMissing = new LongAdder();
    final LongAdder busy = new LongAdder();
    final LongAdder late = new LongAdder();
    final LongAdder cheaperComputed = new LongAdder();
    final LongAdder stored = new LongAdder();
    final LongAdder refused = new LongAdder();
    final LongAdder deleted = new LongAdder();
    final LongAdder sentBytes = new LongAdder();
    final LongAdder receivedBytes = new LongAdder();

    /// A read found nothing.
    void recordMiss(MissCauses.Cause cause) {
        switch (cause) {
            case NEVER_SEEN -> absent.increment();
            case EVICTED -> missedEvicted.increment();
            case QUOTA -> missedQuota.increment();
            case EXPIRED -> expired.increment();
            case DELETED -> missedDeleted.increment();
        }
    }

    private KeyspaceStats.Reads reads() {
        return new KeyspaceStats.Reads(
                hits.sum(),
                absent.sum(),
                missedEvicted.sum(),
                missedQuota.sum(),
                missedDeleted.sum(),
                expired.sum(),
                otherHalfMissing.sum(),
                busy.sum(),
                late.sum(),
                cheaperComputed.sum());
    }

    /// Grows when the store evicts, or refuses a write for want of room.
    long evictionPressure() {
        return evicted.sum() + refused.sum();
    }

    KeyspaceStats stats(
            KeyIndex index, ExistsPins existsPins, KeyspaceLimits keyspaceLimits, KeyspaceStats.Usage usage) {
        return new KeyspaceStats(
                index.count(),
                index.expiringCount(),
                reads(),
                new KeyspaceStats.Writes(stored.sum(), refused.sum(), deleted.sum()),
                new KeyspaceStats.ExistsPinCounts(
                        existsPins.granted(),
                        existsPins.unpinned(),
                        existsPins.violated(),
                        existsPins.heldBytes(),
                        existsPins.fulfilled(),
                        existsPins.declined()),
                usage,
                new KeyspaceStats.Traffic(
                        sentBytes.sum(),
                        receivedBytes.sum(),
                        keyspaceLimits.outgoing().usedBytes(),
                        keyspaceLimits.incoming().usedBytes()),
                evicted.sum(),
                cheaperComputed.sum(),
                fromDisk.sum());
    }
}
