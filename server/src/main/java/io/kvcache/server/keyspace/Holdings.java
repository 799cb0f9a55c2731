package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.quota.Quota;
import io.kvcache.server.quota.Stock;
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
final class Holdings {

    private static final long PAGE = 4096;

    private final Quota quota;
    private final TreeMap<Long, KeyEntry> order = new TreeMap<>();
    private final LongAdder evicted = new LongAdder();
    private final Map<BlockKey, Long> strangers = new LinkedHashMap<>();

    Holdings(Quota quota) {
        this.quota = quota;
    }

    boolean limited() {
        return quota.limited();
    }

    long evictedCount() {
        return evicted.sum();
    }

    /// When what goes first was last used, as [io.kvcache.server.quota.Stock#oldestUse] has it.
    long oldestUse() {
        synchronized (order) {
            KeyEntry oldest = strangers.isEmpty() ? oldest() : null;
            if (oldest == null) {
                return strangers.isEmpty() ? Stock.NOTHING : 0;
            }
            return oldest.usedAt();
        }
    }

    /// The entry that goes next, or null when there is none.
    @Nullable
    KeyEntry oldest() {
        synchronized (order) {
            for (Map.Entry<Long, KeyEntry> first = order.firstEntry(); first != null; first = order.firstEntry()) {
                KeyEntry entry = first.getValue();
                long used = entry.usedAt();
                if (used == first.getKey()) {
                    return entry;
                }
                order.remove(first.getKey());
                entry.placedAt(used);
                order.put(used, entry);
            }
            return null;
        }
    }

    /// An entry went because there were too many bytes.
    void countEvicted() {
        evicted.increment();
    }

    /// A value is used.
    void use(KeyEntry entry) {
        entry.usedAt(quota.nextUse());
    }

    /// A value is stored.
    void enter(KeyEntry entry) {
        quota.enter(bytes(entry));
        if (limited()) {
            synchronized (order) {
                place(entry);
            }
        }
    }

    /// A stored value is gone.
    void leave(KeyEntry entry) {
        quota.leave(bytes(entry));
        if (limited()) {
            synchronized (order) {
                order.remove(entry.placedAt(), entry);
            }
        }
    }

    /// A value is stored in place of another.
    void replace(KeyEntry older, KeyEntry entry) {
        long more = bytes(entry) - bytes(older);
        if (more != 0) { // mostly it is as large, and what loops share is dear to touch
            quota.enter(more);
        }
        if (limited()) {
            synchronized (order) {
                order.remove(older.placedAt(), older);
                place(entry);
            }
        }
    }

    private void place(KeyEntry entry) {
        long now = quota.nextUse();
        entry.usedAt(now);
        entry.placedAt(now);
        order.put(now, entry);
    }

    private static long bytes(KeyEntry entry) {
        return bytes(entry.key(), entry.bytes());
    }

    /// A value was found whose key is not known.
    ///
    /// @param bytes of value and key together
    void enterStranger(BlockKey digest, long bytes) {
        long charged = Quota.charge(bytes);
        synchronized (order) {
            if (strangers.putIfAbsent(digest, charged) == null) {
                quota.enter(charged);
            }
        }
    }

    /// It is gone, or its key is known by now; answers whether it was there.
    boolean leaveStranger(BlockKey digest) {
        if (!limited()) {
            return false; // there are none then
        }
        synchronized (order) {
            Long charged = strangers.remove(digest);
            quota.leave(charged == null ? 0 : charged);
            return charged != null;
        }
    }

    boolean isStranger(BlockKey digest) {
        synchronized (order) {
            return strangers.containsKey(digest);
        }
    }

    /// One of them, or null when there is none.
    @Nullable
    BlockKey anyStranger() {
        synchronized (order) {
            return strangers.isEmpty() ? null : strangers.keySet().iterator().next();
        }
    }

    List<BlockKey> strangers() {
        synchronized (order) {
            return List.copyOf(strangers.keySet());
        }
    }

    /// What a value takes of the store.
    static long bytes(Key key, long valueBytes) {
        return Trailer.storedBytes(key.bytes().length, valueBytes, PAGE);
    }
}
