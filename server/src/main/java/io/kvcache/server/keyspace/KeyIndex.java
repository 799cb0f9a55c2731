package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// The keys of a keyspace in the order of their digests, and which of them expire when.
///
/// **Why by digest.** The store's events name what left by digest, so that is what has to be found. And the order
/// of digests is fixed, so the place where a listing stopped is a number: a listing needs no state here, goes on
/// after a restart, and meets every key that was there all the while, whatever came and went.
///
/// **How.** Digests are spread evenly, so the first bits of one are as good as a hash of it: a
/// table whose buckets are taken by them is in order from bucket to bucket, and few entries are in
/// each ([KeyShard]).
///
/// **Bound.** It holds what the store holds, at most as many entries as the store has records, plus what left
/// since the store was last asked ([EvictionListener]). An entry is about 200 bytes of heap.
///
/// **Threads.** Any. Writers of one key hold its lock ([#lockOf]).
final class KeyIndex {

    /// Parts of the index with a lock each, by the first bits of a digest: many more than threads.
    private static final int SHARD_BITS = 8;

    /// Event loops are few; a thousand locks make meeting by chance rare, and cost 50 KB.
    private static final int LOCKS = 1024;

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
    private final AtomicInteger expiringCount;
    private final ReentrantLock[] locks = new ReentrantLock[LOCKS];

    /// @param expiringCount of the keyspace, kept here: entries that have an expiry
    KeyIndex(AtomicInteger expiringCount) {
        this.expiringCount = expiringCount;
        Arrays.setAll(locks, _ -> new ReentrantLock());
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

    /// The lock of a key, one of a fixed number, which is held while store and index change together.
    ReentrantLock lockOf(BlockKey hash) {
        return locks[(int) hash.lo() & LOCKS - 1];
    }

    /// Puts an entry in place of the one that has its key; returns that one.
    @Nullable
    KeyEntry put(KeyEntry entry) {
        KeyEntry older = shard(entry.hi).put(entry);
        if (older == null) {
            count.incrementAndGet();
        } else {
            removeExpiry(older);
        }
        addExpiry(entry);
        return older;
    }

    /// Takes an entry away, unless another one has its place by now; returns whether it was here.
    boolean remove(KeyEntry entry) {
        boolean removed = shard(entry.hi).remove(entry);
        if (removed) {
            count.decrementAndGet();
            removeExpiry(entry);
        }
        return removed;
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

    /// The keys whose digests begin with the same bits, in a table by the bits after those: in order
    /// from bucket to bucket, in any order within one.
    ///
    /// The entries of a bucket are linked by themselves, so that one that comes or goes makes nothing
    /// else. The table doubles when it has as many entries as buckets, and halves when it has an
    /// eighth of that, so that what walks through it meets few empty ones.
    ///
    /// **Threads.** Any; each call holds the shard's lock for a moment.
    static final class KeyShard {

        static final Comparator<BlockKey> ORDER = (a, b) ->
                a.hi() == b.hi() ? Long.compareUnsigned(a.lo(), b.lo()) : Long.compareUnsigned(a.hi(), b.hi());

        private static final Comparator<KeyEntry> BY_HASH = Comparator.comparing(KeyEntry::hash, ORDER);
        private static final int FIRST_BITS = 2;
        private static final int MAX_BITS = 24;
        /// The table halves below one entry in so many buckets.
        private static final int SHRINK_RATIO = 8;

        private final int bitsBefore;
        private int bits = FIRST_BITS;
        private @Nullable KeyEntry[] table = new KeyEntry[1 << FIRST_BITS];
        private int count;

        /// @param bitsBefore that are the same in all its digests
        KeyShard(int bitsBefore) {
            this.bitsBefore = bitsBefore;
        }

        private int bucketOf(long hi) {
            return (int) (hi << bitsBefore >>> (Long.SIZE - bits));
        }

        synchronized int bucketCount() {
            return table.length;
        }

        synchronized @Nullable KeyEntry find(BlockKey hash) {
            KeyEntry at = table[bucketOf(hash.hi())];
            while (at != null && !at.isNamed(hash.hi(), hash.lo())) {
                at = at.next();
            }
            return at;
        }

        /// Puts an entry in place of the one that has its key, and answers that one.
        synchronized @Nullable KeyEntry put(KeyEntry entry) {
            int bucket = bucketOf(entry.hi);
            KeyEntry before = null;
            for (KeyEntry at = table[bucket]; at != null; before = at, at = at.next()) {
                if (at.isNamed(entry.hi, entry.lo)) {
                    entry.next(at.next());
                    link(bucket, before, entry);
                    at.next(null); // or one that is gone would keep others from being collected
                    return at;
                }
            }
            entry.next(table[bucket]);
            table[bucket] = entry;
            count++;
            if (count > table.length && bits < MAX_BITS) {
                resize(bits + 1);
            }
            return null;
        }

        /// Takes this very entry away; answers whether it was here.
        @SuppressWarnings("ReferenceEquality")
        synchronized boolean remove(KeyEntry entry) {
            int bucket = bucketOf(entry.hi);
            KeyEntry before = null;
            for (KeyEntry at = table[bucket]; at != null; before = at, at = at.next()) {
                if (at == entry) {
                    link(bucket, before, at.next());
                    at.next(null);
                    count--;
                    if (count < table.length / SHRINK_RATIO && bits > FIRST_BITS) {
                        resize(bits - 1);
                    }
                    return true;
                }
            }
            return false;
        }

        private void link(int bucket, @Nullable KeyEntry before, @Nullable KeyEntry after) {
            if (before == null) {
                table[bucket] = after;
            } else {
                before.next(after);
            }
        }

        /// Growing splits one bucket into two neighbours, and shrinking joins two, so the order stays.
        private void resize(int newBits) {
            @Nullable KeyEntry[] before = table;
            bits = newBits;
            table = new KeyEntry[1 << bits];
            for (KeyEntry first : before) {
                KeyEntry at = first;
                while (at != null) {
                    KeyEntry next = at.next();
                    int bucket = bucketOf(at.hi);
                    at.next(table[bucket]);
                    table[bucket] = at;
                    at = next;
                }
            }
        }

        /// Adds the entries from a digest of this shard on, in order, at most `max`; answers the one
        /// after those, or null when the shard has no more.
        synchronized @Nullable KeyEntry scan(BlockKey from, int max, List<KeyEntry> found) {
            int end = found.size() + max;
            for (int bucket = bucketOf(from.hi()); bucket < table.length; bucket++) {
                int start = found.size();
                for (KeyEntry at = table[bucket]; at != null; at = at.next()) {
                    if (ORDER.compare(at.hash(), from) >= 0) {
                        found.add(at);
                    }
                }
                found.subList(start, found.size()).sort(BY_HASH);
                if (found.size() > end) {
                    KeyEntry next = found.get(end);
                    found.subList(end, found.size()).clear();
                    return next;
                }
            }
            return null;
        }
    }

    /// One key, with size, expiry and number of its value.
    ///
    /// It has the digest itself: entries are met all over memory, and a digest behind two references would be two
    /// more places to wait for.
    static final class KeyEntry {

        private final byte[] keyBytes;
        private final long hi;
        private final long lo;
        private final long bytes;
        private final long writeNumber;
        private volatile long expiresAtMillis;
        private volatile boolean paired;
        private volatile long lastUse;
        private long orderedBy;
        private volatile long protectedUntil;
        private volatile boolean isProtected;
        private @Nullable KeyEntry next;

        /// @param writeNumber see [#writeNumber()]; 0 outside of a cluster
        KeyEntry(ObjectKey key, long bytes, long expiresAtMillis, long writeNumber) {
            keyBytes = key.bytes();
            hi = key.digest().hi();
            lo = key.digest().lo();
            this.bytes = bytes;
            this.writeNumber = writeNumber;
            this.expiresAtMillis = expiresAtMillis;
        }

        ObjectKey key() {
            return new ObjectKey(keyBytes, hash());
        }

        /// The name that the store knows it by.
        BlockKey hash() {
            return new BlockKey(hi, lo);
        }

        private boolean isNamed(long digestHi, long digestLo) {
            return lo == digestLo && hi == digestHi;
        }

        /// Returns whether it says this of its value.
        boolean isOf(long size, long expiry, long number) {
            return bytes == size && expiresAtMillis == expiry && writeNumber == number;
        }

        /// The entry after it in its bucket; guarded by its shard of the index.
        @Nullable
        KeyEntry next() {
            return next;
        }

        void next(@Nullable KeyEntry after) {
            next = after;
        }

        /// Size of the value.
        long bytes() {
            return bytes;
        }

        /// The number at which the value was written, 0 for unknown; see [HashSlotOwnership].
        long writeNumber() {
            return writeNumber;
        }

        /// Milliseconds since the epoch, or 0 for never.
        long expiresAtMillis() {
            return expiresAtMillis;
        }

        void expiresAtMillis(long at) {
            expiresAtMillis = at;
        }

        boolean isExpired(long nowMillis) {
            long at = expiresAtMillis;
            return at != 0 && at <= nowMillis;
        }

        /// The number of its last use, as the quota counts them.
        long lastUse() {
            return lastUse;
        }

        void lastUse(long number) {
            lastUse = number;
        }

        /// The use by which it stands in the quota's order; guarded by the quota.
        long orderedBy() {
            return orderedBy;
        }

        void orderedBy(long number) {
            orderedBy = number;
        }

        /// The quota takes others before it for a while.
        ///
        /// @param nanos of the store's clock
        void protectUntil(long nanos) {
            protectedUntil = nanos;
            isProtected = true;
        }

        boolean isProtected(long nanos) {
            return isProtected && protectedUntil - nanos > 0;
        }

        /// Returns whether it was seen together with its other half.
        boolean isPaired() {
            return paired;
        }

        void markPaired() {
            paired = true;
        }
    }
}
