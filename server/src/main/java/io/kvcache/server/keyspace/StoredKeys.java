package io.kvcache.server.keyspace;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.keyspace.KeyspaceStats.KeyspaceCounters;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import java.time.InstantSource;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// What a keyspace knows of its keys beside the store: which there are, which have expired or lost their other
/// half, which another server may have written since, which are being written, and why others have left. It
/// removes what is to go. Reads and writes both ask it.
///
/// Store and index change together, under the key's lock ([KeyIndex#lockOf]). So an expiry that was found on the
/// old value cannot take away the new one, and an index entry always is of the value that is in the store. Readers
/// take no lock, and no thread holds two.
///
/// **Evictions.** It follows the store's events. One is only a reason to look: whether the key is still there is
/// asked of the store. So it does not matter that a value may have been replaced since, and after a gap in the
/// events every key is asked for once, a bounded number at a time.
///
/// **Threads.** Any.
final class StoredKeys {

    /// Events or keys looked at in one go: about a millisecond.
    private static final int EVENT_BATCH = 4096;

    private final LocalKvCache cache;
    private final Namespace namespace;
    private final InstantSource wallClock;
    private final ExistsPins existsPins;
    private final MissCauses missCauses;
    private @Nullable MissLog missLog;
    private final KeyspaceCounters counters = new KeyspaceCounters();
    private final KeyIndex index = new KeyIndex(counters.expiringKeys);
    private final QuotaEnforcer quota;
    private final @Nullable HashSlotOwnership slotOwnership;

    /// How many writers are at each key at this moment.
    private final ConcurrentHashMap<ObjectKey, Integer> writers = new ConcurrentHashMap<>();

    private final EventStream events;

    /// This and the next two are read and written by [#processEvents] alone.
    private long nextSequence;

    private long recheckFrom;
    private boolean rechecking;

    /// Registers the namespace, and follows the store's events from now on.
    ///
    /// @param clock of the store
    /// @param wallClock that values expire by
    StoredKeys(LocalKvCache cache, Namespace namespace, Clock clock, InstantSource wallClock, KeyspaceOptions options) {
        this.cache = cache;
        this.namespace = namespace;
        this.wallClock = wallClock;
        missCauses = new MissCauses(clock::nanos);
        slotOwnership = options.slotOwnership();
        existsPins = new ExistsPins(options.existsPin().toNanos(), options.maxPinnedBytes(), counters);
        cache.register(namespace);
        quota = new QuotaEnforcer(
                options.quotaBytes(),
                options.keyspaceLimits().incoming(),
                cache.objects(namespace),
                index,
                this::evict,
                clock);
        events = cache.events().withoutObjectPuts();
        nextSequence = events.nextSequence();
    }

    KeyIndex index() {
        return index;
    }

    ExistsPins existsPins() {
        return existsPins;
    }

    KeyspaceCounters counters() {
        return counters;
    }

    QuotaEnforcer quota() {
        return quota;
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

    /// Returns why a key is not here. One that is still listed was evicted a moment ago.
    MissLog.Reason missReason(ObjectKey key) {
        BlockKey hash = key.digest();
        return index.find(hash) == null ? missCauses.causeOf(hash) : MissLog.Reason.EVICTED;
    }

    /// Returns whether the store has a key, in memory or on disk.
    boolean isStored(ObjectKey key) {
        return cache.containsObject(namespace, key.bytes());
    }

    /// A writer begins with a key. [#endWrite] follows.
    void beginWrite(ObjectKey key) {
        writers.merge(key, 1, Integer::sum);
    }

    /// A writer's value is stored or given up.
    void endWrite(ObjectKey key) {
        writers.computeIfPresent(key, (_, count) -> count == 1 ? null : count - 1);
    }

    /// The number for a value that is written now; 0 outside of a cluster.
    long writeNumber() {
        HashSlotOwnership ownership = slotOwnership;
        return ownership == null ? 0 : ownership.writeNumber();
    }

    /// Returns whether the values may be older than others of the cluster.
    boolean hasFence() {
        return slotOwnership != null;
    }

    /// Returns whether no other server can have a later value of a key that is stored here. Keys of content always
    /// have the same value. A value without an entry was not written by this process.
    boolean isAdmitted(ObjectKey key, @Nullable KeyEntry entry) {
        HashSlotOwnership ownership = slotOwnership;
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
                dropFromStore(key, MissLog.Reason.OUTDATED);
                missCauses.record(key.digest(), MissLog.Reason.OUTDATED);
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
            MissLog.Reason left = missCauses.causeOf(key.digest());
            return left == MissLog.Reason.NEVER_SEEN ? MissLog.Reason.OUTDATED : left;
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
            removeUnlessWriting(entry, MissLog.Reason.EVICTED, _ -> true);
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
        KeyEntry entry = quota.isLimited() ? index.find(key.digest()) : null;
        if (entry != null) {
            quota.touch(entry);
        }
    }

    /// Notes a value that is stored. Call it under the lock of its key.
    void putEntry(KeyEntry entry) {
        KeyEntry older = index.put(entry);
        if (older == null) {
            quota.add(entry);
        } else {
            quota.replace(older, entry);
        }
    }

    private void removeEntry(KeyEntry entry, MissLog.Reason cause) {
        dropEntry(entry);
        missCauses.record(entry.hash(), cause);
    }

    private void dropEntry(KeyEntry entry) {
        if (index.remove(entry)) {
            quota.remove(entry);
        }
    }

    /// Notes that an entry and its other half are both here.
    void markPaired(KeyEntry entry) {
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

    /// Forgets a key; returns whether the store had it.
    boolean remove(ObjectKey key, MissLog.Reason cause) {
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
        if (removeIf(entry, MissLog.Reason.QUOTA, _ -> true)) {
            existsPins.revoke(entry.key());
            removeOtherHalf(entry, MissLog.Reason.QUOTA);
        }
        return true;
    }

    /// Forgets a key whose time is up.
    void expire(KeyEntry entry, long now) {
        removeUnlessWriting(entry, MissLog.Reason.EXPIRED, it -> it.isExpired(now));
    }

    /// Forgets a key, unless something newer has its place by now, or will have soon: dropping the key now would
    /// drop that with it.
    private void removeUnlessWriting(KeyEntry entry, MissLog.Reason cause, Predicate<KeyEntry> still) {
        if (!writers.containsKey(entry.key()) && removeIf(entry, cause, still)) {
            existsPins.revoke(entry.key());
        }
    }

    /// Removes an entry and its value, unless another entry has its place; returns whether it did.
    private boolean removeIf(KeyEntry entry, MissLog.Reason cause, Predicate<KeyEntry> still) {
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
    private boolean dropFromStore(ObjectKey key, MissLog.Reason cause) {
        return cause == MissLog.Reason.QUOTA
                ? cache.objects(namespace).dropForQuota(key.digest())
                : cache.dropObject(namespace, key.bytes());
    }

    private void removeOtherHalf(KeyEntry entry, MissLog.Reason cause) {
        ObjectKey other = entry.key().otherHalf(namespace);
        if (other != null && entry.isPaired()) {
            remove(other, cause);
        }
    }

    /// Catches up with the events there are now, in at most `maxBatches` goes.
    synchronized void processEvents(int maxBatches) {
        for (int go = 0; go < maxBatches; go++) {
            if (!processBatch()) {
                return;
            }
        }
    }

    /// Answers whether there is more to do.
    private boolean processBatch() {
        if (rechecking) {
            recheckIndex();
            return true;
        }
        EventBatch batch = events.since(nextSequence, EVENT_BATCH);
        nextSequence = batch.nextSequence();
        if (batch.hasGap()) {
            rechecking = true;
            recheckFrom = 0;
        }
        for (CacheEvent event : batch.events()) {
            if (isRemoval(event.kind())) {
                removeIfGone(new BlockKey(event.keyHi(), event.keyLo()), MissLog.Reason.of(event.kind()));
            }
        }
        return rechecking || batch.events().size() == EVENT_BATCH;
    }

    /// A newer value under the key stays listed: its writer has told the index.
    private static boolean isRemoval(EventKind kind) {
        return !kind.isAddition() && kind != EventKind.REPLACED;
    }

    private void removeIfGone(BlockKey digest, MissLog.Reason cause) {
        KeyEntry entry = index.find(digest);
        if (entry == null) {
            quota.removeUnindexedIfGone(digest);
        } else {
            removeIfGone(entry, cause);
        }
    }

    private void removeIfGone(KeyEntry entry, MissLog.Reason cause) {
        ReentrantLock lock = index.lockOf(entry.hash());
        lock.lock();
        try {
            if (isStored(entry.key())) {
                return;
            }
            removeEntry(entry, cause);
        } finally {
            lock.unlock();
        }
        removeOtherHalf(entry, cause);
        if (cause == MissLog.Reason.EVICTED) {
            counters.evicted.increment();
        }
    }

    private void recheckIndex() {
        if (recheckFrom == 0) {
            quota.removeAllUnindexedGone();
        }
        KeyIndex.IndexPage indexPage = index.page(recheckFrom, EVENT_BATCH);
        indexPage.entries().forEach(entry -> removeIfGone(entry, MissLog.Reason.EVICTED));
        recheckFrom = indexPage.next();
        rechecking = recheckFrom != 0;
    }
}
