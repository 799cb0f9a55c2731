package io.kvcache.server.keyspace;

import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.miss.MissLog;
import java.util.Arrays;
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
    /// @param absent misses of keys that were never here, or so long ago that it is forgotten
    /// @param evicted misses of keys whose room the store took
    /// @param quota misses of keys that went because of the quota
    /// @param deleted misses of keys that a client deleted
    /// @param outdated misses of keys of which another server of the cluster may have a later value
    /// @param expired misses of keys whose time was up
    /// @param halved misses of keys whose other half was gone
    /// @param busy misses because as much was being sent as may be
    /// @param late misses of values that are on disk and did not come in time, or found no room in memory
    /// @param left misses that the server told of values on disk, as they are computed sooner than read
    public record Reads(
            long hits,
            long absent,
            long evicted,
            long quota,
            long deleted,
            long outdated,
            long expired,
            long halved,
            long busy,
            long late,
            long left) {

        /// Returns how many look-ups found nothing for a reason.
        public long of(MissLog.Reason reason) {
            return switch (reason) {
                case NEVER_SEEN -> absent;
                case EVICTED -> evicted;
                case QUOTA -> quota;
                case EXPIRED -> expired;
                case DELETED -> deleted;
                case OUTDATED -> outdated;
                case BUSY -> busy;
                case LATE -> late;
                case COMPUTED_SOONER -> left;
                case OTHER_HALF -> halved;
            };
        }

        public long misses() {
            return Arrays.stream(MissLog.Reason.values()).mapToLong(this::of).sum();
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

        private long missed(MissLog.Reason reason) {
            return Objects.requireNonNull(missed.get(reason)).sum();
        }

        private KeyspaceStats.Reads reads() {
            return new KeyspaceStats.Reads(
                    hits.sum(),
                    missed(MissLog.Reason.NEVER_SEEN),
                    missed(MissLog.Reason.EVICTED),
                    missed(MissLog.Reason.QUOTA),
                    missed(MissLog.Reason.DELETED),
                    missed(MissLog.Reason.OUTDATED),
                    missed(MissLog.Reason.EXPIRED),
                    missed(MissLog.Reason.OTHER_HALF),
                    missed(MissLog.Reason.BUSY),
                    missed(MissLog.Reason.LATE),
                    missed(MissLog.Reason.COMPUTED_SOONER));
        }

        /// Grows when the store evicts, or refuses a write for want of room.
        long evictionPressure() {
            return evicted.sum() + refused.sum();
        }

        KeyspaceStats stats(
                KeyIndex index, ExistsPins existsPins, KeyspaceLimits keyspaceLimits, KeyspaceStats.Usage usage) {
            return new KeyspaceStats(
                    index.count(),
                    expiringKeys.get(),
                    reads(),
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
                    missed(MissLog.Reason.COMPUTED_SOONER),
                    fromDisk.sum());
        }
    }
}
