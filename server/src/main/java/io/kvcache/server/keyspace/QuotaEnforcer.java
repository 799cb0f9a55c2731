package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.quota.ByteBudget;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Keeps a keyspace within its quota and the server within its bounds: what is over it pushes out the keyspace's
/// own values, never another's.
///
/// **What counts:** the slots of stored values, and of those being written. Each counts once, whether it is in host
/// memory, on disk or both. So a quota bounds what a tenant has, and an added disk calls for larger quotas. An evicted
/// value no longer counts, although its memory is free only after its last reader.
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

    /// Values that one put evicts at the most: some tens of milliseconds. A large value in place of very many
    /// small ones is refused until enough of them have gone.
    private static final int MAX_EVICTIONS_PER_PUT = 10_000;

    /// Values that are spared and that one eviction passes over: a tenant may have no others.
    private static final int MAX_PROTECTED_SKIPS = 1000;

    private final long limitBytes;
    private final AtomicLong usedBytes = new AtomicLong();

    /// Used instead of `usedBytes` without a limit, so that threads do not contend for one counter.
    private final LongAdder unlimitedBytes = new LongAdder();

    private final AtomicLong useCounter = new AtomicLong();
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

    /// @param limitBytes 0 for no limit
    /// @param incoming values that are being written
    QuotaEnforcer(
            long limitBytes, ByteBudget incoming, ObjectCatalog catalog, KeyIndex index, Evictor evictor, Clock clock) {
        this.limitBytes = limitBytes;
        this.incoming = incoming;
        this.catalog = catalog;
        this.index = index;
        this.evictor = evictor;
        this.clock = clock;
    }

    boolean isLimited() {
        return limitBytes > 0;
    }

    private long usedBytes() {
        // A sum over what threads add may have seen a value leave and not enter.
        return isLimited() ? usedBytes.get() : Math.max(0, unlimitedBytes.sum());
    }

    /// Something is stored, room or not.
    private void addUsage(long bytes) {
        if (isLimited()) {
            usedBytes.addAndGet(bytes);
        } else {
            unlimitedBytes.add(bytes);
        }
    }

    /// Takes room for a value while it is written; returns false when it does not fit. [#onReceived] gives it
    /// back.
    boolean reserve(ObjectKey key, long bytes) {
        if (!incoming.tryAcquire(bytes)) {
            return false;
        }
        boolean fits = reserveQuota(key, bytes);
        if (!fits) {
            incoming.release(bytes);
        }
        return fits;
    }

    /// The bytes of a value are there, or will not come: the value itself counts from here on, if there is one.
    void onReceived(ObjectKey key, long bytes) {
        addUsage(-chargedBytes(key, bytes));
        incoming.release(bytes);
    }

    /// Takes room for a value, made by evicting what the tenant did not use for longest.
    private boolean reserveQuota(ObjectKey key, long valueBytes) {
        long bytes = chargedBytes(key, valueBytes);
        if (isLimited() && bytes > limitBytes) {
            return false;
        }
        boolean reserved = tryReserve(bytes);
        for (int i = 0; !reserved && i < MAX_EVICTIONS_PER_PUT; i++) {
            if (!evictOne(key)) {
                return false; // The rest is being written.
            }
            reserved = tryReserve(bytes);
        }
        return reserved;
    }

    private boolean tryReserve(long bytes) {
        if (!isLimited()) {
            addUsage(bytes);
            return true;
        }
        long used = usedBytes.get();
        while (used + bytes <= limitBytes) {
            if (usedBytes.compareAndSet(used, used + bytes)) {
                return true;
            }
            used = usedBytes.get();
        }
        return false;
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
        return new KeyspaceStats.Usage(usedBytes(), limitBytes, evicted.sum());
    }

    /// A value is used.
    void touch(KeyEntry entry) {
        entry.lastUse(useCounter.incrementAndGet());
    }

    /// A value is stored.
    void add(KeyEntry entry) {
        removeUnindexed(entry.hash());
        addUsage(chargedBytes(entry));
        if (isLimited()) {
            synchronized (byUse) {
                reposition(entry);
            }
        }
    }

    /// A stored value is gone.
    void remove(KeyEntry entry) {
        addUsage(-chargedBytes(entry));
        if (isLimited()) {
            synchronized (byUse) {
                byUse.remove(entry.orderedBy(), entry);
            }
        }
    }

    /// A value is stored in place of another.
    void replace(KeyEntry older, KeyEntry entry) {
        long more = chargedBytes(entry) - chargedBytes(older);
        if (more != 0) { // mostly it is as large, and what loops share is dear to touch
            addUsage(more);
        }
        if (isLimited()) {
            synchronized (byUse) {
                byUse.remove(older.orderedBy(), older);
                reposition(entry);
            }
        }
    }

    private void reposition(KeyEntry entry) {
        long now = useCounter.incrementAndGet();
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
        if (isLimited()) {
            catalog.list().forEach(this::onFound);
        }
    }

    private void onFound(ObjectCatalog.Entry found) {
        ReentrantLock lock = index.lockOf(found.digest());
        lock.lock();
        try {
            if (index.find(found.digest()) == null && catalog.contains(found.digest())) {
                addUnindexed(found.digest(), (found.bytes() + PAGE - 1) / PAGE * PAGE);
            }
        } finally {
            lock.unlock();
        }
    }

    private void addUnindexed(BlockKey digest, long charged) {
        synchronized (byUse) {
            if (unindexed.putIfAbsent(digest, charged) == null) {
                addUsage(charged);
            }
        }
    }

    /// Forgets an unindexed value: it is gone, or its key is known by now. Returns whether there was one.
    private boolean removeUnindexed(BlockKey digest) {
        if (!isLimited()) {
            return false; // there are none then
        }
        synchronized (byUse) {
            Long charged = unindexed.remove(digest);
            addUsage(charged == null ? 0 : -charged);
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
