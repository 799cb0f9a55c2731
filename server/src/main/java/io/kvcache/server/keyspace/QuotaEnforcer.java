package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.time.Clock;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.quota.Quota;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Keeps a keyspace within its quota and the server within its bounds: what is over it pushes out the keyspace's
/// own values, never another's.
///
/// **Order.** A use takes a number and notes it in the entry, no more, so readers take no lock. Entries stand in a
/// map by the number that they had when they were put there; the first one goes when its number is still that,
/// else it is put where it belongs by now. Numbers only grow, so the first whose number is right is the one unused
/// for longest.
///
/// **Unindexed values** are those that the store has from before a restart, and whose keys are not known before a
/// client asks for them. They count for the quota, and they go first, as they were not used since. Without a quota
/// nothing is kept of them.
///
/// **Threads.** Any; changes of the order hold its lock, uses do not.
final class QuotaEnforcer {

    private static final long PAGE = 4096;

    /// Values that one put evicts at the most: some tens of milliseconds. A large value in place of very many small
    /// ones is refused until enough of them have gone.
    private static final int MAX_EVICTIONS_PER_PUT = 10_000;

    /// Values that are spared and that one eviction passes over: a tenant may have no others.
    private static final int MAX_PROTECTED_SKIPS = 1000;

    private final Quota quota;
    private final ByteBudget incoming;
    private final ObjectCatalog catalog;
    private final KeyIndex index;
    private final Evictor evictor;
    private final Clock clock;
    private final TreeMap<Long, KeyEntry> byUse = new TreeMap<>();
    private final Map<BlockKey, Long> unindexed = new LinkedHashMap<>();
    private final LongAdder evicted = new LongAdder();

    /// Forgets a value to make room.
    interface Evictor {
        /// Evicts a value if it may go.
        ///
        /// @param by the key that the room is for, whose own older value may go
        /// @return whether it is gone
        boolean evict(KeyEntry entry, ObjectKey by);
    }

    /// @param incoming values that are being written
    QuotaEnforcer(
            Quota quota, ByteBudget incoming, ObjectCatalog catalog, KeyIndex index, Evictor evictor, Clock clock) {
        this.quota = quota;
        this.incoming = incoming;
        this.catalog = catalog;
        this.index = index;
        this.evictor = evictor;
        this.clock = clock;
    }

    Quota quota() {
        return quota;
    }

    /// Reserves quota for a value while it is written; null when it does not fit. [#onReceived] ends it.
    Quota.@Nullable QuotaReservation reserve(ObjectKey key, long bytes) {
        if (!incoming.tryAcquire(bytes)) {
            return null;
        }
        Quota.QuotaReservation reservation = reserveQuota(key, bytes);
        if (reservation == null) {
            incoming.release(bytes);
        }
        return reservation;
    }

    /// The bytes of a value are there, or will not come: the value itself counts from here on, if there is one.
    void onReceived(Quota.QuotaReservation reservation, long bytes) {
        reservation.close();
        incoming.release(bytes);
    }

    /// Room for a value, made by evicting what the tenant did not use for longest; null when it cannot be made.
    private Quota.@Nullable QuotaReservation reserveQuota(ObjectKey key, long valueBytes) {
        long bytes = chargedBytes(key, valueBytes);
        if (!quota.canFit(bytes)) {
            return null;
        }
        Quota.QuotaReservation reservation = quota.reserve(bytes);
        for (int i = 0; reservation == null && i < MAX_EVICTIONS_PER_PUT; i++) {
            if (!evictOne(key)) {
                return null; // The rest is being written.
            }
            reservation = quota.reserve(bytes);
        }
        return reservation;
    }

    /// Evicts what was unused for longest; answers whether there was anything.
    private boolean evictOne(ObjectKey by) {
        if (evictUnindexed()) {
            evicted.increment();
            return true;
        }
        KeyEntry oldest = nextVictim();
        if (oldest == null) {
            return false;
        }
        if (evictor.evict(oldest, by)) {
            evicted.increment();
        } else {
            touch(oldest); // It is replaced soon: others go before it.
        }
        return true;
    }

    /// Picks the next victim; protected entries move behind all others first.
    private @Nullable KeyEntry nextVictim() {
        long now = clock.nanos();
        KeyEntry oldest = oldest();
        for (int i = 0; i < MAX_PROTECTED_SKIPS && oldest != null && oldest.isProtected(now); i++) {
            touch(oldest);
            oldest = oldest();
        }
        return oldest;
    }

    /// The entry that goes next, or null when there is none.
    private @Nullable KeyEntry oldest() {
        synchronized (byUse) {
            for (Map.Entry<Long, KeyEntry> first = byUse.firstEntry(); first != null; first = byUse.firstEntry()) {
                KeyEntry entry = first.getValue();
                long used = entry.lastUse();
                if (used == first.getKey()) {
                    return entry;
                }
                byUse.remove(first.getKey());
                entry.orderedBy(used);
                byUse.put(used, entry);
            }
            return null;
        }
    }

    KeyspaceStats.Usage usage() {
        return new KeyspaceStats.Usage(quota.usedBytes(), quota.limitBytes(), evicted.sum());
    }

    /// A value is used.
    void touch(KeyEntry entry) {
        entry.lastUse(quota.nextUse());
    }

    /// A value is stored.
    void add(KeyEntry entry) {
        removeUnindexed(entry.hash());
        quota.addUsage(chargedBytes(entry));
        if (quota.isLimited()) {
            synchronized (byUse) {
                reposition(entry);
            }
        }
    }

    /// A stored value is gone.
    void remove(KeyEntry entry) {
        quota.removeUsage(chargedBytes(entry));
        if (quota.isLimited()) {
            synchronized (byUse) {
                byUse.remove(entry.orderedBy(), entry);
            }
        }
    }

    /// A value is stored in place of another.
    void replace(KeyEntry older, KeyEntry entry) {
        long more = chargedBytes(entry) - chargedBytes(older);
        if (more != 0) { // mostly it is as large, and what loops share is dear to touch
            quota.addUsage(more);
        }
        if (quota.isLimited()) {
            synchronized (byUse) {
                byUse.remove(older.orderedBy(), older);
                reposition(entry);
            }
        }
    }

    private void reposition(KeyEntry entry) {
        long now = quota.nextUse();
        entry.lastUse(now);
        entry.orderedBy(now);
        byUse.put(now, entry);
    }

    private static long chargedBytes(KeyEntry entry) {
        return chargedBytes(entry.key(), entry.bytes());
    }

    /// The bytes that a value is charged for.
    private static long chargedBytes(ObjectKey key, long valueBytes) {
        return ValueTrailer.storedBytes(key.bytes().length, valueBytes, PAGE);
    }

    /// Looks for all values that the store has and the index has not heard of.
    void scanUnindexed() {
        if (quota.isLimited()) {
            catalog.list().forEach(this::onFound);
        }
    }

    private void onFound(ObjectCatalog.Entry found) {
        ReentrantLock lock = index.lockOf(found.digest());
        lock.lock();
        try {
            if (index.find(found.digest()) == null && catalog.contains(found.digest())) {
                addUnindexed(found.digest(), Quota.chargedBytes(found.bytes()));
            }
        } finally {
            lock.unlock();
        }
    }

    private void addUnindexed(BlockKey digest, long charged) {
        synchronized (byUse) {
            if (unindexed.putIfAbsent(digest, charged) == null) {
                quota.addUsage(charged);
            }
        }
    }

    /// Forgets an unindexed value: it is gone, or its key is known by now. Returns whether there was one.
    private boolean removeUnindexed(BlockKey digest) {
        if (!quota.isLimited()) {
            return false; // there are none then
        }
        synchronized (byUse) {
            Long charged = unindexed.remove(digest);
            quota.removeUsage(charged == null ? 0 : charged);
            return charged != null;
        }
    }

    /// An event said that this unindexed value may be gone.
    void removeUnindexedIfGone(BlockKey digest) {
        boolean known;
        synchronized (byUse) {
            known = unindexed.containsKey(digest);
        }
        if (known && !catalog.contains(digest)) {
            removeUnindexed(digest);
        }
    }

    /// Any of the unindexed values may be gone.
    void removeAllUnindexedGone() {
        List<BlockKey> all;
        synchronized (byUse) {
            all = List.copyOf(unindexed.keySet());
        }
        all.forEach(this::removeUnindexedIfGone);
    }

    /// Forgets an unindexed value to make room; returns whether there was one.
    ///
    /// A writer that is replacing just this value loses what it writes: which key the value has is not known.
    private boolean evictUnindexed() {
        BlockKey digest;
        synchronized (byUse) {
            digest = unindexed.isEmpty() ? null : unindexed.keySet().iterator().next();
        }
        if (digest == null) {
            return false;
        }
        ReentrantLock lock = index.lockOf(digest);
        lock.lock();
        try {
            if (removeUnindexed(digest)) {
                catalog.dropForQuota(digest);
            }
        } finally {
            lock.unlock();
        }
        return true;
    }
}
