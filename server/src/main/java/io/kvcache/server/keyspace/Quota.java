package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// How many bytes a keyspace may take, and which of its values goes when there are too many: the one that was not
/// used for the longest time.
///
/// **Order.** A use takes a number and notes it in the entry, no more, so readers take no lock. Entries stand in a map
/// by the number that they had when they were put there; the first one goes when its number is still that, else it is
/// put where it belongs by now. Numbers only grow, so the first whose number is right is the one unused for longest.
///
/// **What counts** is slots of stored values and of those that are being written, each once, whether it is in host
/// memory, on disk or both: so a tenant's quota bounds what it has, and who adds a disk gives larger quotas. A value
/// that a reader holds counts
/// no more once it is evicted, though its memory is free only after that.
///
/// **Threads.** Any; changes hold the lock, uses do not.
final class Quota {

    private static final long PAGE = 4096;

    private final long limitBytes;
    private final AtomicLong uses = new AtomicLong();
    private final TreeMap<Long, KeyEntry> order = new TreeMap<>();
    private final LongAdder evicted = new LongAdder();
    private final Map<BlockKey, Long> strangers = new LinkedHashMap<>();
    private long usedBytes;

    /// @param limitBytes 0 for no limit
    Quota(long limitBytes) {
        this.limitBytes = limitBytes;
    }

    /// Room that was given to one value that is being written, until it is closed.
    final class Share implements AutoCloseable {

        private final long bytes;
        private boolean open = true;

        private Share(long bytes) {
            this.bytes = bytes;
        }

        @Override
        public void close() {
            synchronized (order) {
                if (open) {
                    open = false;
                    usedBytes -= bytes;
                }
            }
        }
    }

    boolean limited() {
        return limitBytes > 0;
    }

    long limitBytes() {
        return limitBytes;
    }

    long usedBytes() {
        synchronized (order) {
            return usedBytes;
        }
    }

    long evictedCount() {
        return evicted.sum();
    }

    /// Whether a value could ever be taken.
    boolean fits(Key key, long valueBytes) {
        return !limited() || bytes(key, valueBytes) <= limitBytes;
    }

    /// Takes room for a value, or answers null while there is none.
    @Nullable
    Share take(Key key, long valueBytes) {
        long bytes = bytes(key, valueBytes);
        synchronized (order) {
            if (limited() && usedBytes + bytes > limitBytes) {
                return null;
            }
            usedBytes += bytes;
            return new Share(bytes);
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
        entry.usedAt(uses.incrementAndGet());
    }

    /// A value is stored.
    void enter(KeyEntry entry) {
        long now = uses.incrementAndGet();
        synchronized (order) {
            usedBytes += bytes(entry.key(), entry.bytes());
            if (limited()) {
                entry.usedAt(now);
                entry.placedAt(now);
                order.put(now, entry);
            }
        }
    }

    /// A stored value is gone.
    void leave(KeyEntry entry) {
        synchronized (order) {
            usedBytes -= bytes(entry.key(), entry.bytes());
            if (limited()) {
                order.remove(entry.placedAt(), entry);
            }
        }
    }

    /// A value was found whose key is not known.
    ///
    /// @param bytes of value and key together
    void enterStranger(BlockKey digest, long bytes) {
        long charged = (bytes + PAGE - 1) / PAGE * PAGE;
        synchronized (order) {
            if (strangers.putIfAbsent(digest, charged) == null) {
                usedBytes += charged;
            }
        }
    }

    /// It is gone, or its key is known by now; answers whether it was there.
    boolean leaveStranger(BlockKey digest) {
        synchronized (order) {
            Long charged = strangers.remove(digest);
            usedBytes -= charged == null ? 0 : charged;
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

    private static long bytes(Key key, long valueBytes) {
        return Trailer.storedBytes(key.bytes().length, valueBytes, PAGE);
    }
}
