package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The keys whose digests begin with the same bits, in a table by the bits after those: in order
/// from bucket to bucket, in any order within one.
///
/// The entries of a bucket are linked by themselves, so that one that comes or goes makes nothing
/// else. The table doubles when it has as many entries as buckets, and halves when it has an
/// eighth of that, so that what walks through it meets few empty ones.
///
/// **Threads.** Any; each call holds the shard's lock for a moment.
final class KeyShard {

    static final Comparator<BlockKey> ORDER =
            (a, b) -> a.hi() == b.hi() ? Long.compareUnsigned(a.lo(), b.lo()) : Long.compareUnsigned(a.hi(), b.hi());

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

    private int bucketOf(BlockKey hash) {
        return (int) (hash.hi() << bitsBefore >>> (Long.SIZE - bits));
    }

    private static boolean isSame(BlockKey a, BlockKey b) {
        return a.lo() == b.lo() && a.hi() == b.hi();
    }

    synchronized int bucketCount() {
        return table.length;
    }

    synchronized @Nullable KeyEntry find(BlockKey hash) {
        KeyEntry at = table[bucketOf(hash)];
        while (at != null && !isSame(at.hash(), hash)) {
            at = at.next();
        }
        return at;
    }

    /// Puts an entry in place of the one that has its key, and answers that one.
    synchronized @Nullable KeyEntry put(KeyEntry entry) {
        int bucket = bucketOf(entry.hash());
        KeyEntry before = null;
        for (KeyEntry at = table[bucket]; at != null; before = at, at = at.next()) {
            if (isSame(at.hash(), entry.hash())) {
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
        int bucket = bucketOf(entry.hash());
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

    /// Of one bucket come two neighbours, and of two neighbours one, so the order stays.
    private void resize(int newBits) {
        @Nullable KeyEntry[] before = table;
        bits = newBits;
        table = new KeyEntry[1 << bits];
        for (KeyEntry first : before) {
            KeyEntry at = first;
            while (at != null) {
                KeyEntry next = at.next();
                int bucket = bucketOf(at.hash());
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
        for (int bucket = bucketOf(from); bucket < table.length; bucket++) {
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
