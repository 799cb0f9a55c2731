package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// The keys of a keyspace in the order of their digests, and which of them expire when.
///
/// **Why by digest.** The store's events name what left by digest, so that is what has to be found. And the order of
/// digests is fixed, so the place where a listing stopped is a number: a listing needs no state here, goes on after
/// a restart, and meets every key that was there all the while, whatever came and went.
///
/// **Bound.** It holds what the store holds, at most as many entries as the store has records, plus what left since
/// the store was last asked ([KeyFollower]). An entry is about 250 bytes of heap.
///
/// **Threads.** Any. Writers of one key hold its lock ([KeyLocks]).
final class KeyIndex {

    private static final Comparator<BlockKey> UNSIGNED =
            (a, b) -> a.hi() == b.hi() ? Long.compareUnsigned(a.lo(), b.lo()) : Long.compareUnsigned(a.hi(), b.hi());

    private record Due(long atMillis, BlockKey hash) implements Comparable<Due> {
        @Override
        public int compareTo(Due other) {
            int byTime = Long.compare(atMillis, other.atMillis);
            return byTime == 0 ? UNSIGNED.compare(hash, other.hash) : byTime;
        }
    }

    private final NavigableMap<BlockKey, KeyEntry> entries = new ConcurrentSkipListMap<>(UNSIGNED);
    private final NavigableMap<Due, KeyEntry> due = new ConcurrentSkipListMap<>();
    private final AtomicInteger count = new AtomicInteger();
    private final AtomicInteger timed = new AtomicInteger();
    private final Holdings holdings;

    /// @param holdings told what enters and leaves
    KeyIndex(Holdings holdings) {
        this.holdings = holdings;
    }

    @Nullable
    KeyEntry find(BlockKey hash) {
        return entries.get(hash);
    }

    /// Puts an entry in place of the one that has its key.
    void put(KeyEntry entry) {
        KeyEntry older = entries.put(entry.hash(), entry);
        if (older == null) {
            count.incrementAndGet();
        } else {
            forgetDue(older);
            holdings.leave(older);
        }
        holdings.leaveStranger(entry.hash());
        holdings.enter(entry);
        rememberDue(entry);
    }

    /// Takes an entry away, unless another one has its place by now.
    void remove(KeyEntry entry) {
        if (entries.remove(entry.hash(), entry)) {
            count.decrementAndGet();
            forgetDue(entry);
            holdings.leave(entry);
        }
    }

    /// Lets an entry expire at another time; 0 for never.
    void expireAt(KeyEntry entry, long atMillis) {
        forgetDue(entry);
        entry.expiresAtMillis(atMillis);
        rememberDue(entry);
    }

    private void rememberDue(KeyEntry entry) {
        if (entry.expiresAtMillis() != 0 && due.put(new Due(entry.expiresAtMillis(), entry.hash()), entry) == null) {
            timed.incrementAndGet();
        }
    }

    private void forgetDue(KeyEntry entry) {
        if (entry.expiresAtMillis() != 0 && due.remove(new Due(entry.expiresAtMillis(), entry.hash()), entry)) {
            timed.decrementAndGet();
        }
    }

    /// The entries that have expired longest, at most `max`.
    List<KeyEntry> expired(long nowMillis, int max) {
        List<KeyEntry> found = new ArrayList<>();
        for (var each : due.entrySet()) {
            if (each.getKey().atMillis() > nowMillis || found.size() == max) {
                break;
            }
            found.add(each.getValue());
        }
        return found;
    }

    /// A run of entries from a place on.
    ///
    /// @param cursor 0 to begin, or what the run before answered
    Run run(long cursor, int max) {
        List<KeyEntry> found = new ArrayList<>(Math.min(max, 1024));
        for (var each : entries.tailMap(new BlockKey(cursor << 1, 0), true).entrySet()) {
            if (found.size() == max) {
                return new Run(found, Math.max(1, each.getKey().hi() >>> 1));
            }
            found.add(each.getValue());
        }
        return new Run(found, 0);
    }

    /// @param next where the next run begins: the first 63 bits of a digest; 0 when this was the last
    record Run(List<KeyEntry> entries, long next) {}

    int count() {
        return count.get();
    }

    /// How many of them will expire.
    int timedCount() {
        return timed.get();
    }

    void clear() {
        for (KeyEntry entry : entries.values()) {
            remove(entry);
        }
    }
}
