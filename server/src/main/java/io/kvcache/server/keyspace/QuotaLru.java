package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.quota.EvictableStock;
import io.kvcache.server.quota.Quota;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The values of a keyspace as its quota sees them: what they take, and which goes first.
///
/// **Order.** A use takes a number and notes it in the entry, no more, so readers take no lock. Entries stand in a map
/// by the number that they had when they were put there; the first one goes when its number is still that, else it is
/// put where it belongs by now. Numbers only grow, so the first whose number is right is the one unused for longest.
///
/// **Threads.** Any; changes hold the lock, uses do not.
final class QuotaLru {

    private static final long PAGE = 4096;

    private final Quota quota;
    private final TreeMap<Long, KeyEntry> byUse = new TreeMap<>();
    private final LongAdder evicted = new LongAdder();
    private final Map<BlockKey, Long> unindexed = new LinkedHashMap<>();

    QuotaLru(Quota quota) {
        this.quota = quota;
    }

    boolean isLimited() {
        return quota.isLimited();
    }

    long evictedCount() {
        return evicted.sum();
    }

    /// When what goes first was last used, as [io.kvcache.server.quota.Evictable#oldestUse] has it.
    long oldestUse() {
        synchronized (byUse) {
            KeyEntry oldest = unindexed.isEmpty() ? oldest() : null;
            if (oldest == null) {
                return unindexed.isEmpty() ? EvictableStock.NOTHING_EVICTABLE : 0;
            }
            return oldest.lastUse();
        }
    }

    /// The entry that goes next, or null when there is none.
    @Nullable
    KeyEntry oldest() {
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

    /// An entry went because there were too many bytes.
    void countEvicted() {
        evicted.increment();
    }

    /// A value is used.
    void touch(KeyEntry entry) {
        entry.lastUse(quota.nextUse());
    }

    /// A value is stored.
    void add(KeyEntry entry) {
        quota.addUsage(chargedBytes(entry));
        if (isLimited()) {
            synchronized (byUse) {
                reposition(entry);
            }
        }
    }

    /// A stored value is gone.
    void remove(KeyEntry entry) {
        quota.removeUsage(chargedBytes(entry));
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
            quota.addUsage(more);
        }
        if (isLimited()) {
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

    /// A value was found whose key is not known.
    ///
    /// @param bytes of value and key together
    void addUnindexed(BlockKey digest, long bytes) {
        long charged = Quota.chargedBytes(bytes);
        synchronized (byUse) {
            if (unindexed.putIfAbsent(digest, charged) == null) {
                quota.addUsage(charged);
            }
        }
    }

    /// It is gone, or its key is known by now; answers whether it was there.
    boolean removeUnindexed(BlockKey digest) {
        if (!isLimited()) {
            return false; // there are none then
        }
        synchronized (byUse) {
            Long charged = unindexed.remove(digest);
            quota.removeUsage(charged == null ? 0 : charged);
            return charged != null;
        }
    }

    boolean isUnindexed(BlockKey digest) {
        synchronized (byUse) {
            return unindexed.containsKey(digest);
        }
    }

    /// One of them, or null when there is none.
    @Nullable
    BlockKey anyUnindexed() {
        synchronized (byUse) {
            return unindexed.isEmpty() ? null : unindexed.keySet().iterator().next();
        }
    }

    List<BlockKey> unindexed() {
        synchronized (byUse) {
            return List.copyOf(unindexed.keySet());
        }
    }

    /// What a value takes of the store.
    static long chargedBytes(Key key, long valueBytes) {
        return ValueTrailer.storedBytes(key.bytes().length, valueBytes, PAGE);
    }
}
