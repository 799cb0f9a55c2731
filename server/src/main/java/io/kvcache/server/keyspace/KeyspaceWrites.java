package io.kvcache.server.keyspace;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Clock;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.KeyspaceStats.KeyspaceCounters;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.quota.Quota;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Changes the values of a keyspace: puts, removals, and times of expiry. Store and index change together, under
/// the key's lock ([KeyIndex#lockOf]).
///
/// So an expiry that was found on the old value cannot take away the new one, and an index entry always is of the
/// value that is in the store. Readers take no lock, and no thread holds two.
///
/// **Several writers of one key.** Each fills room of its own, and its value replaces the older one when it is
/// complete. So the last writer to finish wins, as with Redis. A writer that disconnects, is too slow or finds its
/// condition refused takes nothing from the others.
///
/// **Threads.** Any.
final class KeyspaceWrites {

    /// Longer than a client takes from the first half of a value to the second.
    private static final Duration REJECTION_RETENTION = Duration.ofSeconds(10);

    private static final int MAX_REJECTED_HALVES = 10_000;

    private final LocalKvCache cache;
    private final Namespace namespace;
    private final Clock clock;
    private final InstantSource wallClock;
    private final ExistsPins existsPins;
    private final MissCauses missCauses;
    private @Nullable MissLog missLog;
    private final KeyspaceCounters counters = new KeyspaceCounters();
    private final KeyIndex index = new KeyIndex(counters.expiringKeys);
    private final QuotaEnforcer quotaEnforcer;
    private final @Nullable SlotOwnership slotOwnership;

    /// How many writers are at each key at this moment.
    private final ConcurrentHashMap<ObjectKey, Integer> writers = new ConcurrentHashMap<>();

    /// Halves that were not stored a moment ago, and why, so that the other one need not come either.
    private final Cache<ObjectKey, PendingPut.State> rejectedHalves;

    /// Registers the namespace.
    ///
    /// @param clock of the store
    /// @param wallClock that values expire by
    KeyspaceWrites(
            LocalKvCache cache, Namespace namespace, Clock clock, InstantSource wallClock, KeyspaceOptions options) {
        this.cache = cache;
        this.namespace = namespace;
        this.clock = clock;
        this.wallClock = wallClock;
        missCauses = new MissCauses(clock::nanos);
        slotOwnership = options.slotOwnership();
        existsPins = new ExistsPins(options.existsPin().toNanos(), options.maxPinnedBytes(), counters);
        cache.register(namespace);
        quotaEnforcer = new QuotaEnforcer(
                new Quota(options.quotaBytes()),
                options.keyspaceLimits().incoming(),
                cache.objects(namespace),
                index,
                this::evict,
                clock);
        rejectedHalves = Caffeine.newBuilder()
                .maximumSize(MAX_REJECTED_HALVES)
                .expireAfterWrite(REJECTION_RETENTION)
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
    }

    KeyIndex index() {
        return index;
    }

    ExistsPins existsPins() {
        return existsPins;
    }

    /// Has misses told of from now on; before the keyspace is used.
    void recordMissesTo(MissLog log) {
        missLog = log;
    }

    /// A look-up found nothing.
    void recordMiss(ObjectKey key, MissLog.Reason reason) {
        counters.recordMiss(reason);
        MissLog log = missLog;
        if (log != null) {
            log.recordValue(namespace, key.bytes(), reason, () -> missCauses.departureOf(key.digest()));
        }
    }

    MissCauses missCauses() {
        return missCauses;
    }

    KeyspaceCounters counters() {
        return counters;
    }

    QuotaEnforcer quotaEnforcer() {
        return quotaEnforcer;
    }

    /// Returns whether the store has a key, in memory or on disk.
    private boolean isStored(ObjectKey key) {
        return cache.containsObject(namespace, key.bytes());
    }

    /// Begins to write a value.
    ///
    /// @param predecessor the key that readers take before this one; null for none
    PendingPut put(ObjectKey key, long bytes, byte @Nullable [] predecessor) {
        ObjectKey other = key.otherHalf(namespace);
        PendingPut.State why = other == null ? null : rejectedHalves.getIfPresent(other);
        if (why != null) {
            return drop(key, bytes, why);
        }
        why = PendingPut.State.REJECTED;
        writers.merge(key, 1, Integer::sum);
        Quota.QuotaReservation reservation = quotaEnforcer.reserve(key, bytes);
        if (reservation != null) {
            ObjectWriter writer =
                    cache.putObject(namespace, key.bytes(), predecessor, bytes + ValueTrailer.BYTES, KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                return new PendingPut(this, key, bytes, reservation, writer);
            }
            why = writer.outcome() == PutOutcome.DECLINED ? PendingPut.State.DECLINED : why;
            writer.close();
            quotaEnforcer.onReceived(reservation, bytes);
        }
        endWrite(key);
        if (other != null) {
            rejectedHalves.put(key, why);
            delete(other);
        }
        return drop(key, bytes, why);
    }

    /// Stores a value that is at hand and never expires; returns false when there is no room.
    boolean store(ObjectKey key, byte[] value) {
        if (quotaEnforcer.quota().isLimited() || ObjectKey.isHalf(key.bytes())) {
            return storeByPut(key, value);
        }
        long number = writeNumber();
        MemorySegment object = MemorySegment.ofArray(ValueTrailer.append(value, number));
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            if (!cache.storeObject(namespace, key.bytes(), object, KvCache.NO_WAIT)) {
                counters.refused.increment();
                return false;
            }
            KeyEntry known = index.find(key.digest());
            if (known == null || !known.isOf(value.length, 0, number)) {
                putEntry(new KeyEntry(key, value.length, 0, number));
            }
        } finally {
            lock.unlock();
        }
        onStored(key, value.length);
        return true;
    }

    private boolean storeByPut(ObjectKey key, byte[] value) {
        try (PendingPut put = put(key, value)) {
            return put.state() == PendingPut.State.WRITING
                    && put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
        }
    }

    /// Begins to write a value that is at hand.
    PendingPut put(ObjectKey key, byte[] value) {
        PendingPut put = put(key, value.length, null);
        int left = put.state() == PendingPut.State.WRITING ? value.length : 0;
        while (left > 0) {
            ByteBuffer room = put.writableBuffer();
            int part = Math.min(room.remaining(), left);
            room.put(value, value.length - left, part);
            left -= part;
        }
        return put;
    }

    private PendingPut drop(ObjectKey key, long bytes, PendingPut.State why) {
        (why == PendingPut.State.DECLINED ? counters.declined : counters.refused).increment();
        return new PendingPut(this, key, bytes, why);
    }

    /// The bytes of a value are there, or will not come.
    void onReceived(Quota.QuotaReservation reservation, long bytes) {
        quotaEnforcer.onReceived(reservation, bytes);
    }

    /// A writer's value is stored or given up.
    void endWrite(ObjectKey key) {
        writers.computeIfPresent(key, (_, count) -> count == 1 ? null : count - 1);
    }

    /// Makes a value findable that is complete; returns whether the condition held.
    ///
    /// @param number at which it is written
    /// @param older the value that the key must still have, or null for any
    boolean commit(
            ObjectKey key,
            ObjectWriter writer,
            KeyInfo info,
            long number,
            PendingPut.Condition condition,
            @Nullable PinnedValue older) {
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            if (!isMet(condition, key) || (older != null && !isStillHeld(key, older))) {
                return false;
            }
            if (writer.seal() == SealOutcome.SEALED) {
                KeyEntry entry = new KeyEntry(key, info.bytes(), info.expiresAtMillis(), number);
                putEntry(entry);
                markPaired(entry);
            }
        } finally {
            lock.unlock();
        }
        onStored(key, info.bytes());
        if (ObjectKey.isHalf(key.bytes())) {
            rejectedHalves.invalidate(key);
        }
        return true;
    }

    private void onStored(ObjectKey key, long bytes) {
        counters.stored.increment();
        counters.receivedBytes.add(bytes);
        existsPins.onReplaced(key, cache, namespace, clock.nanos());
    }

    private boolean isMet(PendingPut.Condition condition, ObjectKey key) {
        if (condition == PendingPut.Condition.ALWAYS) {
            return true;
        }
        KeyEntry entry = index.find(key.digest());
        boolean present =
                (entry == null || !entry.isExpired(wallClock.millis())) && isStored(key) && isAdmitted(key, entry);
        return present == (condition == PendingPut.Condition.IF_PRESENT);
    }

    private void putEntry(KeyEntry entry) {
        KeyEntry older = index.put(entry);
        if (older == null) {
            quotaEnforcer.add(entry);
        } else {
            quotaEnforcer.replace(older, entry);
        }
    }

    private void removeEntry(KeyEntry entry, MissCauses.Cause cause) {
        dropEntry(entry);
        missCauses.record(entry.hash(), cause);
    }

    private void dropEntry(KeyEntry entry) {
        if (index.remove(entry)) {
            quotaEnforcer.remove(entry);
        }
    }

    /// Notes that an entry and its other half are both here.
    private void markPaired(KeyEntry entry) {
        ObjectKey other = entry.key().otherHalf(namespace);
        KeyEntry partner = other == null ? null : index.find(other.digest());
        if (partner != null) {
            entry.markPaired();
            partner.markPaired();
        }
    }

    /// Makes an entry for a key that the store had before the index was made; null when the key is not here.
    @Nullable
    KeyEntry backfill(ObjectKey key) {
        ObjectView view = cache.getObject(namespace, key.bytes());
        try (PinnedValue value = view == null ? null : PinnedValue.of(view)) {
            return value == null ? null : backfill(key, value);
        }
    }

    /// The same with the value at hand, which stays the caller's.
    @Nullable
    KeyEntry backfill(ObjectKey key, PinnedValue value) {
        BlockKey hash = key.digest();
        ReentrantLock lock = index.lockOf(hash);
        lock.lock();
        try {
            KeyEntry known = index.find(hash);
            if (known == null && isStored(key)) {
                long number = slotOwnership == null ? 0 : value.writeNumber();
                known = new KeyEntry(key, value.bytes(), value.expiresAtMillis(), number);
                putEntry(known);
                markPaired(known);
            }
            return known;
        } finally {
            lock.unlock();
        }
    }

    /// The number for a value that is written now; 0 outside of a cluster.
    long writeNumber() {
        SlotOwnership ownership = slotOwnership;
        return ownership == null ? 0 : ownership.writeNumber();
    }

    /// Returns whether the values may be older than others of the cluster.
    boolean hasFence() {
        return slotOwnership != null;
    }

    /// Returns whether no other server can have a later value of a key that is stored here. Keys of content always have
    /// the same value. A value without an entry was not written by this process.
    boolean isAdmitted(ObjectKey key, @Nullable KeyEntry entry) {
        SlotOwnership ownership = slotOwnership;
        return ownership == null
                || (entry != null && ownership.admits(key.bytes(), entry.writeNumber()))
                || ChunkKey.of(key.bytes()) != null;
    }

    /// Returns whether a key is stored whose value may be older than another server's. It is dropped then.
    boolean isFenced(ObjectKey key) {
        if (slotOwnership == null || isAdmitted(key, index.find(key.digest())) || !isStored(key)) {
            return false;
        }
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            KeyEntry entry = index.find(key.digest());
            if (isAdmitted(key, entry)) {
                return false; // a later value has its place
            }
            if (!writers.containsKey(key)) { // else dropping the key now would drop what is being written
                if (entry != null) {
                    dropEntry(entry);
                }
                dropFromStore(key, MissCauses.Cause.OUTDATED);
                missCauses.record(key.digest(), MissCauses.Cause.OUTDATED);
            }
        } finally {
            lock.unlock();
        }
        existsPins.revoke(key);
        return true;
    }

    /// Returns whether a key counts as gone although the store has it: it has expired, its other half is gone, or
    /// another server may have a later value. It is dropped then. Counts nothing.
    boolean isStale(ObjectKey key) {
        return staleReason(key) != null;
    }

    /// As [#isStale], for a look-up: it is a miss if so.
    boolean isStaleLookup(ObjectKey key) {
        MissLog.Reason reason = staleReason(key);
        if (reason != null) {
            recordMiss(key, reason);
        }
        return reason != null;
    }

    private MissLog.@Nullable Reason staleReason(ObjectKey key) {
        if (isFenced(key)) {
            MissCauses.Cause left = missCauses.causeOf(key.digest());
            return left == MissCauses.Cause.NEVER_SEEN ? MissLog.Reason.OUTDATED : MissLog.Reason.of(left);
        }
        KeyEntry entry = index.find(key.digest());
        if (entry == null) {
            return null;
        }
        ObjectKey other = key.otherHalf(namespace);
        long now = wallClock.millis();
        if (entry.isExpired(now)) {
            expire(entry, now);
            return MissLog.Reason.EXPIRED;
        }
        if (other != null && entry.isPaired() && !isStored(other)) {
            removeUnlessWriting(entry, MissCauses.Cause.EVICTED, _ -> true);
            return MissLog.Reason.OTHER_HALF;
        }
        return null;
    }

    /// Returns whether a value has expired whose expiry was not known: one from before a restart. From now on it
    /// is, so that a client that writes the key at this moment finds it absent.
    boolean isExpiredUnindexed(ObjectKey key, PinnedValue value) {
        long now = wallClock.millis();
        if (index.find(key.digest()) != null || value.expiresAtMillis() > now) {
            return false;
        }
        KeyEntry entry = backfill(key, value);
        if (entry != null) {
            expire(entry, now);
        }
        recordMiss(key, MissLog.Reason.EXPIRED);
        return true;
    }

    /// A value is used.
    void recordUse(ObjectKey key) {
        KeyEntry entry = quotaEnforcer.quota().isLimited() ? index.find(key.digest()) : null;
        if (entry != null) {
            quotaEnforcer.touch(entry);
        }
    }

    /// Forgets a key; returns whether it was here.
    boolean delete(ObjectKey key) {
        if (isStale(key)) {
            remove(key, MissCauses.Cause.DELETED);
            return false;
        }
        return deleteUnchecked(key);
    }

    /// Forgets a key that does not count as gone; returns whether it was here.
    boolean deleteUnchecked(ObjectKey key) {
        boolean dropped = remove(key, MissCauses.Cause.DELETED);
        if (dropped) {
            counters.deleted.increment();
        }
        return dropped;
    }

    /// Forgets a key if it has a value that is held; returns whether it had.
    boolean delete(ObjectKey key, PinnedValue held) {
        boolean done = ifStillHeld(key, held, () -> remove(key, MissCauses.Cause.DELETED));
        if (done) {
            counters.deleted.increment();
        }
        return done;
    }

    /// Lets a key expire at another time if it has a value that is held; returns whether it has.
    boolean expireAt(ObjectKey key, long atMillis, PinnedValue held) {
        return ifStillHeld(key, held, () -> {
            var _ = backfill(key, held); // a hint may have brought it from disk before any client asked for it
            return expireAt(key, atMillis);
        });
    }

    private boolean ifStillHeld(ObjectKey key, PinnedValue held, BooleanSupplier change) {
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            return isStillHeld(key, held) && change.getAsBoolean();
        } finally {
            lock.unlock();
        }
    }

    private boolean isStillHeld(ObjectKey key, PinnedValue held) {
        try (ObjectView now = cache.holdObject(namespace, key.bytes())) {
            return now != null && held.isSameValue(now);
        }
    }

    /// Lets a key expire at another time, 0 for never; returns whether the index has it.
    boolean expireAt(ObjectKey key, long atMillis) {
        BlockKey hash = key.digest();
        ReentrantLock lock = index.lockOf(hash);
        lock.lock();
        try {
            KeyEntry entry = index.find(hash);
            if (entry != null) {
                index.expireAt(entry, atMillis);
            }
            return entry != null;
        } finally {
            lock.unlock();
        }
    }

    /// Forgets a key; returns whether the store had it.
    private boolean remove(ObjectKey key, MissCauses.Cause cause) {
        BlockKey hash = key.digest();
        ReentrantLock lock = index.lockOf(hash);
        lock.lock();
        try {
            KeyEntry entry = index.find(hash);
            if (entry != null) {
                dropEntry(entry);
            }
            boolean dropped = dropFromStore(key, cause);
            if (dropped || entry != null) {
                missCauses.record(hash, cause);
            }
            return dropped;
        } finally {
            lock.unlock();
            existsPins.revoke(key);
        }
    }

    /// Forgets a key to make room, with its other half, unless something newer has its place by now, or will have
    /// soon, or a client was promised that it stays.
    ///
    /// @param by the key that the room is for, whose own older value may go
    /// @return whether it is gone
    private boolean evict(KeyEntry entry, ObjectKey by) {
        boolean own = entry.key().equals(by);
        if (!own && (writers.containsKey(entry.key()) || existsPins.isPinned(entry.key()))) {
            return false;
        }
        if (removeIf(entry, MissCauses.Cause.QUOTA, _ -> true)) {
            existsPins.revoke(entry.key());
            removeOtherHalf(entry, MissCauses.Cause.QUOTA);
        }
        return true;
    }

    /// Forgets a key whose time is up.
    void expire(KeyEntry entry, long now) {
        removeUnlessWriting(entry, MissCauses.Cause.EXPIRED, it -> it.isExpired(now));
    }

    /// Forgets a key, unless something newer has its place by now, or will have soon: dropping the key now would
    /// drop that with it.
    private void removeUnlessWriting(KeyEntry entry, MissCauses.Cause cause, Predicate<KeyEntry> still) {
        if (!writers.containsKey(entry.key()) && removeIf(entry, cause, still)) {
            existsPins.revoke(entry.key());
        }
    }

    /// Removes an entry and its value, unless another entry has its place; returns whether it did.
    private boolean removeIf(KeyEntry entry, MissCauses.Cause cause, Predicate<KeyEntry> still) {
        ReentrantLock lock = index.lockOf(entry.hash());
        lock.lock();
        try {
            boolean removes = index.find(entry.hash()) == entry && still.test(entry);
            if (removes) {
                removeEntry(entry, cause);
                dropFromStore(entry.key(), cause);
            }
            return removes;
        } finally {
            lock.unlock();
        }
    }

    /// Has the store forget a key; returns whether it had it.
    private boolean dropFromStore(ObjectKey key, MissCauses.Cause cause) {
        return cause == MissCauses.Cause.QUOTA
                ? cache.objects(namespace).dropForQuota(key.digest())
                : cache.dropObject(namespace, key.bytes());
    }

    private void removeOtherHalf(KeyEntry entry, MissCauses.Cause cause) {
        ObjectKey other = entry.key().otherHalf(namespace);
        if (other != null && entry.isPaired()) {
            remove(other, cause);
        }
    }

    /// An event said that this key may be gone.
    ///
    /// @param cause why, if it is
    /// @return whether it is
    boolean removeIfGone(KeyEntry entry, MissCauses.Cause cause) {
        ReentrantLock lock = index.lockOf(entry.hash());
        lock.lock();
        try {
            if (isStored(entry.key())) {
                return false;
            }
            removeEntry(entry, cause);
        } finally {
            lock.unlock();
        }
        removeOtherHalf(entry, cause);
        return true;
    }
}
