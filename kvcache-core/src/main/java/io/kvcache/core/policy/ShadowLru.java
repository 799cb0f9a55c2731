package io.kvcache.core.policy;

import java.util.Arrays;

/// What plain LRU of the same size would have found, from a sample of the blocks.
///
/// Holds fingerprints only. A block is in the sample by its fingerprint, so all uses of a block count
/// or none; an LRU of a tenth of the blocks in a tenth of the size finds what the whole would. The
/// sample begins with all blocks and is halved whenever the table is full. LRU keeps prefixes whole by
/// itself, as a use of a block is a use of all before it, so blocks can be looked at one by one.
///
/// Source: Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST 2015.
final class ShadowLru {

    /// Blocks in the sample.
    static final int MAX_SAMPLE = 1 << 13;

    private static final int TABLE_SIZE = 2 * MAX_SAMPLE;
    static final long BYTES = MAX_SAMPLE * (Long.BYTES + 3L * Integer.BYTES) + (long) TABLE_SIZE * Integer.BYTES;

    private static final int NONE = -1;
    private static final long HASH_MULTIPLIER = 0xD6E8FEB86659FD93L;
    private static final int SAMPLE_BITS = 24;

    private final long[] keys = new long[MAX_SAMPLE];
    private final int[] newer = new int[MAX_SAMPLE];
    private final int[] older = new int[MAX_SAMPLE];
    /// The next entry of the same chain, or of the free ones.
    private final int[] next = new int[MAX_SAMPLE];

    private final int[] heads = new int[TABLE_SIZE];
    private int newest = NONE;
    private int oldest = NONE;
    private int free;
    private int size;
    private int sampled = 1 << SAMPLE_BITS;
    private long limit = Long.MAX_VALUE;

    ShadowLru() {
        Arrays.fill(heads, NONE);
        for (int entry = 0; entry < MAX_SAMPLE; entry++) {
            next[entry] = entry + 1 < MAX_SAMPLE ? entry + 1 : NONE;
        }
    }

    /// Whether a block is in the sample.
    boolean isSampled(long fingerprint) {
        return (int) (spread(fingerprint) >>> (Long.SIZE - SAMPLE_BITS)) < sampled;
    }

    /// A block of the sample is used.
    ///
    /// @return whether LRU would have had it
    boolean recordUse(long fingerprint) {
        int entry = find(fingerprint);
        if (entry != NONE) {
            unlink(entry);
            linkNewest(entry);
            return true;
        }
        if (free == NONE) {
            halveSample();
            if (!isSampled(fingerprint)) {
                return false;
            }
        }
        insert(fingerprint);
        evictExcess();
        return false;
    }

    /// A block of the sample was taken away by its owner: LRU would not have it either.
    void forget(long fingerprint) {
        int entry = find(fingerprint);
        if (entry != NONE) {
            remove(entry);
        }
    }

    /// How many blocks the whole LRU holds.
    void setLimit(long blocks) {
        limit = blocks;
        evictExcess();
    }

    /// Blocks of the sample that are held.
    int size() {
        return size;
    }

    /// Share of the blocks that are in the sample.
    double sampleRatio() {
        return (double) sampled / (1 << SAMPLE_BITS);
    }

    private void evictExcess() {
        double most = limit == Long.MAX_VALUE ? MAX_SAMPLE : Math.max(1, limit * sampleRatio());
        while (size > most) {
            remove(oldest);
        }
    }

    private void halveSample() {
        while (free == NONE) {
            sampled /= 2;
            for (int entry = oldest; entry != NONE; ) {
                int after = newer[entry];
                if (!isSampled(keys[entry])) {
                    remove(entry);
                }
                entry = after;
            }
        }
    }

    private void insert(long fingerprint) {
        int entry = free;
        free = next[entry];
        keys[entry] = fingerprint;
        int place = bucketOf(fingerprint);
        next[entry] = heads[place];
        heads[place] = entry;
        linkNewest(entry);
        size++;
    }

    private void remove(int entry) {
        unlink(entry);
        int place = bucketOf(keys[entry]);
        if (heads[place] == entry) {
            heads[place] = next[entry];
        } else {
            int at = heads[place];
            while (next[at] != entry) {
                at = next[at];
            }
            next[at] = next[entry];
        }
        next[entry] = free;
        free = entry;
        size--;
    }

    private int find(long fingerprint) {
        int entry = heads[bucketOf(fingerprint)];
        while (entry != NONE && keys[entry] != fingerprint) {
            entry = next[entry];
        }
        return entry;
    }

    private void linkNewest(int entry) {
        older[entry] = newest;
        newer[entry] = NONE;
        if (newest == NONE) {
            oldest = entry;
        } else {
            newer[newest] = entry;
        }
        newest = entry;
    }

    private void unlink(int entry) {
        if (older[entry] == NONE) {
            oldest = newer[entry];
        } else {
            newer[older[entry]] = newer[entry];
        }
        if (newer[entry] == NONE) {
            newest = older[entry];
        } else {
            older[newer[entry]] = older[entry];
        }
    }

    private static long spread(long fingerprint) {
        long mixed = fingerprint * HASH_MULTIPLIER;
        return (mixed ^ mixed >>> 32) * HASH_MULTIPLIER;
    }

    private static int bucketOf(long fingerprint) {
        return (int) spread(fingerprint) & (TABLE_SIZE - 1);
    }
}
