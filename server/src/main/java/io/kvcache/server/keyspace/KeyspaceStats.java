package io.kvcache.server.keyspace;

import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.miss.MissLog;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/// The counts of a keyspace. The first two are of this moment, the rest only grow.
///
/// @param keys keys that are listed
/// @param expiringKeys those that have a time to live
/// @param reads what became of look-ups, also of the tenant's values that clients of transport keep elsewhere
/// @param writes what became of writes
/// @param promises what was said to exist
/// @param usage what it takes of the store
/// @param traffic bytes of values that came and went
/// @param evicted values whose room the store took
/// @param cheaperComputed look-ups of values on disk that are computed sooner than read, answered
///     as if they were not here
/// @param fromDisk reads that found a value on disk and not in memory, a part of the hits
public record KeyspaceStats(
        long keys,
        long expiringKeys,
        Reads reads,
        Writes writes,
        ExistsPinCounts promises,
        Usage usage,
        Traffic traffic,
        long evicted,
        long cheaperComputed,
        long fromDisk) {

    /// Bytes of values.
    ///
    /// @param sentBytes of values that reads found, whether all of them went out or not
    /// @param receivedBytes of values that were stored
    /// @param leavingBytes of values and blocks that are being sent now, and stay where they are as long
    /// @param arrivingBytes of values that are being received now
    public record Traffic(long sentBytes, long receivedBytes, long leavingBytes, long arrivingBytes) {}

    /// The memory that it takes of the store.
    ///
    /// @param usedBytes of values that are here or being written
    /// @param quotaBytes most that it may be; 0 for no limit
    /// @param evicted values that went because it would have been more
    public record Usage(long usedBytes, long quotaBytes, long evicted) {}

    /// The outcomes of look-ups. A look-up is a question whether a key is here, a read, or both: a read that
    /// follows a positive answer counts with it and not again.
    ///
    /// @param hits look-ups whose client was told that the value is here, or was given it
    /// @param missed the others, by reason
    public record Reads(long hits, Map<MissLog.Reason, Long> missed) {

        /// Returns how many look-ups found nothing for a reason.
        public long of(MissLog.Reason reason) {
            return missed.getOrDefault(reason, 0L);
        }

        public long misses() {
            return missed.values().stream().mapToLong(Long::longValue).sum();
        }
    }

    /// The outcomes of writes.
    ///
    /// @param stored values that were stored
    /// @param refused writes for which there was no room
    /// @param declined writes of what promised less than what they would have replaced
    /// @param deleted keys that were deleted
    public record Writes(long stored, long refused, long declined, long deleted) {}

    /// Positive answers to EXISTS.
    ///
    /// @param given positive answers that protect the value
    /// @param bare positive answers beyond the quota
    /// @param broken positive answers that were followed by a miss
    /// @param declined values that are here and were said not to be, as the quota was full and the store evicted
    /// @param heldBytes protected now
    /// @param kept reads that followed a positive answer, and are one look-up with it
    public record ExistsPinCounts(long given, long bare, long broken, long heldBytes, long kept, long declined) {}

    /// The counters of a keyspace.
    static final class KeyspaceCounters {

        /// Look-ups that found nothing. Never changed, so that any thread may read it.
        private final Map<MissLog.Reason, LongAdder> missed = new EnumMap<>(MissLog.Reason.class);

        final LongAdder hits = new LongAdder();
        final LongAdder fromDisk = new LongAdder();
        final LongAdder chunksRead = new LongAdder();
        final LongAdder evicted = new LongAdder();
        final LongAdder stored = new LongAdder();
        final LongAdder refused = new LongAdder();
        final LongAdder declined = new LongAdder();
        final LongAdder deleted = new LongAdder();
        final LongAdder sentBytes = new LongAdder();
        final LongAdder receivedBytes = new LongAdder();

        /// Keys that have a time to live.
        final AtomicInteger expiringKeys = new AtomicInteger();

        /// Positive answers that pinned a value.
        final LongAdder existsGranted = new LongAdder();

        /// Positive answers without a pin, for want of quota.
        final LongAdder existsUnpinned = new LongAdder();

        /// Keys that are here and were answered to be absent, for want of quota.
        final LongAdder existsDeclined = new LongAdder();

        /// Positive answers that turned out wrong within their moment.
        final LongAdder existsViolated = new LongAdder();

        /// Reads that followed a positive answer, and are one look-up with it.
        final LongAdder existsFulfilled = new LongAdder();

        /// Positive answers whose moment is not known to be over.
        final AtomicInteger existsAnswers = new AtomicInteger();

        KeyspaceCounters() {
            for (MissLog.Reason reason : MissLog.Reason.values()) {
                missed.put(reason, new LongAdder());
            }
        }

        /// A look-up found nothing.
        void recordMiss(MissLog.Reason reason) {
            Objects.requireNonNull(missed.get(reason)).increment();
        }

        private KeyspaceStats.Reads reads() {
            Map<MissLog.Reason, Long> misses = new EnumMap<>(MissLog.Reason.class);
            missed.forEach((reason, count) -> misses.put(reason, count.sum()));
            return new KeyspaceStats.Reads(hits.sum(), misses);
        }

        /// Grows when the store evicts, or refuses a write for want of room.
        long evictionPressure() {
            return evicted.sum() + refused.sum();
        }

        KeyspaceStats stats(
                KeyIndex index, ExistsPins existsPins, KeyspaceLimits keyspaceLimits, KeyspaceStats.Usage usage) {
            Reads reads = reads();
            return new KeyspaceStats(
                    index.count(),
                    expiringKeys.get(),
                    reads,
                    new KeyspaceStats.Writes(stored.sum(), refused.sum(), declined.sum(), deleted.sum()),
                    new KeyspaceStats.ExistsPinCounts(
                            existsGranted.sum(),
                            existsUnpinned.sum(),
                            existsViolated.sum(),
                            existsPins.heldBytes(),
                            existsFulfilled.sum(),
                            existsDeclined.sum()),
                    usage,
                    new KeyspaceStats.Traffic(
                            sentBytes.sum(),
                            receivedBytes.sum(),
                            keyspaceLimits.outgoing().usedBytes(),
                            keyspaceLimits.incoming().usedBytes()),
                    evicted.sum(),
                    reads.of(MissLog.Reason.COMPUTED_SOONER),
                    fromDisk.sum());
        }
    }
}
