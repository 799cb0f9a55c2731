package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
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
/// **How.** Digests are spread evenly, so the first bits of one are as good as a hash of it: a
/// table whose buckets are taken by them is in order from bucket to bucket, and few entries are in
/// each ([KeyShard]).
///
/// **Bound.** It holds what the store holds, at most as many entries as the store has records, plus what left since
/// the store was last asked ([EvictionListener]). An entry is about 200 bytes of heap.
///
/// **Threads.** Any. Writers of one key hold its lock ([KeyLocks]).
final class KeyIndex {

    /// Parts of the index with a lock each, by the first bits of a digest: many more than threads.
    private static final int SHARD_BITS = 8;

    private record ExpiryKey(long atMillis, BlockKey hash) implements Comparable<ExpiryKey> {
        @Override
        public int compareTo(ExpiryKey other) {
            int byTime = Long.compare(atMillis, other.atMillis);
            return byTime == 0 ? KeyShard.ORDER.compare(hash, other.hash) : byTime;
        }
    }

    private final KeyShard[] shards = new KeyShard[1 << SHARD_BITS];
    private final NavigableMap<ExpiryKey, KeyEntry> expiries = new ConcurrentSkipListMap<>();
    private final AtomicInteger count = new AtomicInteger();
    private final AtomicInteger expiringCount = new AtomicInteger();
    private final QuotaLru quotaLru;

    /// @param quotaLru told what enters and leaves
    KeyIndex(QuotaLru quotaLru) {
        this.quotaLru = quotaLru;
        for (int i = 0; i < shards.length; i++) {
            shards[i] = new KeyShard(SHARD_BITS);
        }
    }

    @Nullable
    KeyEntry find(BlockKey hash) {
        return shard(hash.hi()).find(hash);
    }

    private KeyShard shard(long hi) {
        return shards[shardOf(hi)];
    }

    private static int shardOf(long hi) {
        return (int) (hi >>> (Long.SIZE - SHARD_BITS));
    }

    /// Puts an entry in place of the one that has its key.
    void put(KeyEntry entry) {
        KeyEntry older = shard(entry.hash().hi()).put(entry);
        if (older == null) {
            count.incrementAndGet();
            quotaLru.removeUnindexed(entry.hash());
            quotaLru.add(entry);
        } else {
            removeExpiry(older);
            quotaLru.replace(older, entry);
        }
        addExpiry(entry);
    }

    /// Takes an entry away, unless another one has its place by now.
    void remove(KeyEntry entry) {
        if (shard(entry.hash().hi()).remove(entry)) {
            count.decrementAndGet();
            removeExpiry(entry);
            quotaLru.remove(entry);
        }
    }

    /// Lets an entry expire at another time; 0 for never.
    void expireAt(KeyEntry entry, long atMillis) {
        removeExpiry(entry);
        entry.expiresAtMillis(atMillis);
        addExpiry(entry);
    }

    private void addExpiry(KeyEntry entry) {
        if (entry.expiresAtMillis() != 0
                && expiries.put(new ExpiryKey(entry.expiresAtMillis(), entry.hash()), entry) == null) {
            expiringCount.incrementAndGet();
        }
    }

    private void removeExpiry(KeyEntry entry) {
        if (entry.expiresAtMillis() != 0
                && expiries.remove(new ExpiryKey(entry.expiresAtMillis(), entry.hash()), entry)) {
            expiringCount.decrementAndGet();
        }
    }

    /// The entries that have expired longest, at most `max`.
    List<KeyEntry> findExpired(long nowMillis, int max) {
        List<KeyEntry> found = new ArrayList<>();
        for (var each : expiries.entrySet()) {
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
    IndexPage page(long cursor, int max) {
        List<KeyEntry> found = new ArrayList<>(Math.min(max, 1024));
        BlockKey from = new BlockKey(cursor << 1, 0);
        for (int i = shardOf(from.hi()); i < shards.length; i++) {
            BlockKey first = new BlockKey((long) i << (Long.SIZE - SHARD_BITS), 0);
            boolean begins = shardOf(from.hi()) == i;
            KeyEntry next = shards[i].scan(begins ? from : first, max - found.size(), found);
            if (next != null) {
                return new IndexPage(found, Math.max(1, next.hash().hi() >>> 1));
            }
        }
        return new IndexPage(found, 0);
    }

    /// @param next where the next run begins: the first 63 bits of a digest; 0 when this was the last
    record IndexPage(List<KeyEntry> entries, long next) {}

    int count() {
        return count.get();
    }

    /// How many of them will expire.
    int expiringCount() {
        return expiringCount.get();
    }
}
