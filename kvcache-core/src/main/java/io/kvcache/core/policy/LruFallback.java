package io.kvcache.core.policy;

import java.util.Arrays;

/// Has a learning policy follow LRU while LRU finds more.
///
/// [ShadowLru] tells for a sample of the blocks what LRU would have found. What it finds more is summed
/// up over a sliding window of eight times the resident blocks. When that is a quarter of a percent of
/// the window's uses, and too much for chance, the policy is to order by last use. After a rest it may
/// try again; each time it fails, the rest doubles, and each window that it gets through halves it.
///
/// **Threads.** One writer, the holder of the store's lock.
public final class LruFallback {

    /// Half of what the policy may lose: the other half is for what it loses until the content has
    /// become LRU's.
    private static final double MAX_LOSS = 0.0025;

    private static final int PARTS = HitDifference.PARTS;
    private static final int MIN_PART = 512;
    private static final int MAX_PATIENCE = 64;

    private final ShadowLru shadow = new ShadowLru();
    /// What LRU finds more.
    private final HitDifference loss = new HitDifference();
    private long leftInPart = MIN_PART;
    private boolean isFull;
    private boolean followsLru;
    private int patience = 1;
    private int rest;
    private int partsPassed;
    private long uses;
    private long usesAsLru;
    private long switches;
    private long sampledUses;
    private long hits;
    private long shadowHits;

    LruFallback() {}

    /// Results of the comparison so far.
    ///
    /// @param followsLru whether the policy orders by last use now
    /// @param switches how often it was made to
    /// @param uses of blocks, found or not
    /// @param usesAsLru of these, while it did
    /// @param sampledUses of these, in the sample
    /// @param hits of the sample
    /// @param lruHits that plain LRU of the same size would have had, in the sample
    public record Report(
            boolean followsLru, long switches, long uses, long usesAsLru, long sampledUses, long hits, long lruHits) {

        /// Nothing seen.
        public static final Report EMPTY = new Report(false, 0, 0, 0, 0, 0, 0);

        /// Returns the sum of two instances' reports.
        public Report plus(Report other) {
            return new Report(
                    followsLru || other.followsLru,
                    switches + other.switches,
                    uses + other.uses,
                    usesAsLru + other.usesAsLru,
                    sampledUses + other.sampledUses,
                    hits + other.hits,
                    lruHits + other.lruHits);
        }
    }

    Report report() {
        return new Report(followsLru, switches, uses, usesAsLru, sampledUses, hits, shadowHits);
    }

    boolean followsLru() {
        return followsLru;
    }

    /// Called when the cache is full, with the number of its blocks.
    void onFull(int blocks) {
        isFull = true;
        shadow.setLimit(blocks);
    }

    /// A block is used.
    ///
    /// @param hit whether it was here
    /// @param copied whether a slower tier has it too, so that it is not lost either way; not compared then
    /// @return whether the policy is to change its order
    boolean onUse(long fingerprint, boolean hit, boolean copied) {
        uses++;
        usesAsLru += followsLru ? 1 : 0;
        if (!shadow.isSampled(fingerprint)) {
            return false;
        }
        boolean shadowHit = shadow.recordUse(fingerprint);
        if (!isFull || copied) {
            return false;
        }
        sampledUses++;
        hits += hit ? 1 : 0;
        shadowHits += shadowHit ? 1 : 0;
        boolean before = followsLru;
        if (hit == shadowHit) {
            loss.addEqual();
        } else {
            count(shadowHit ? 1 : -1);
        }
        if (--leftInPart <= 0) {
            nextPart();
        }
        return followsLru != before;
    }

    /// A block was dropped or replaced. LRU would not have it either, so when it is put again neither finds
    /// it.
    void onRemoved(long fingerprint) {
        if (shadow.isSampled(fingerprint)) {
            shadow.forget(fingerprint);
        }
    }

    private void count(int lost) {
        loss.add(lost);
        if (!followsLru && loss.isAbove(MAX_LOSS * PARTS * partLength())) {
            followsLru = true;
            switches++;
            rest = patience * PARTS;
            patience = Math.min(MAX_PATIENCE, 2 * patience);
            beginWindow();
        }
    }

    private void nextPart() {
        leftInPart = partLength();
        if (followsLru && --rest <= 0) {
            followsLru = false;
            beginWindow();
        } else if (!followsLru && ++partsPassed % PARTS == 0) {
            patience = Math.max(1, patience / 2);
        }
        loss.nextPart();
    }

    private void beginWindow() {
        loss.clear();
        partsPassed = 0;
    }

    /// Sampled uses: as many as sampled blocks are held.
    private long partLength() {
        return Math.max(MIN_PART, shadow.size());
    }

    /// Hits that plain LRU of the same size would have had, estimated from a sample of the blocks.
    ///
    /// Holds fingerprints only. A block is in the sample by its fingerprint, so all uses of a block count or none.
    /// An LRU of a tenth of the blocks in a tenth of the size finds the same share as the whole would. The sample
    /// begins with all blocks and is halved whenever the table is full. LRU keeps prefixes whole by itself, as a
    /// use of a block is a use of all before it, so blocks can be looked at one by one.
    ///
    /// Source: Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST 2015.
    static final class ShadowLru {

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

        /// Returns whether a block is in the sample.
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
}
