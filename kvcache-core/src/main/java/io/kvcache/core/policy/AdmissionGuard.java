package io.kvcache.core.policy;

import java.util.Arrays;

/// Says whether an [ImportancePolicy] is to decline new blocks that promise less than the next victim does, by
/// what two small caches find: one that takes every new block, and one that declines.
///
/// Both hold a sample of the blocks, by fingerprint, in proportion to the cache's size. They evict by the policy's
/// own scores, the lowest of a few entries drawn at random. What declining finds more is summed up over a sliding
/// window ([HitDifference]). Blocks are declined from when that is half a percent of the window's uses, and too
/// much for chance, until it is negative. Since neither cache depends on which one is followed, nothing has to be
/// tried out.
///
/// **Threads.** One writer, the holder of the store's lock.
final class AdmissionGuard {

    /// Blocks in each sample at most.
    static final int MAX_SAMPLE = 1 << 12;

    private static final double MIN_GAIN = 0.005;
    private static final int MIN_PART = 512;
    private static final int TRUSTED_SHARE = 10;
    private static final long HASH_MULTIPLIER = 0xD6E8FEB86659FD93L;

    private final Scorer scorer;
    private ShadowCache takingAll = new ShadowCache(false, 0);
    private ShadowCache declining = new ShadowCache(true, 0);
    private final HitDifference difference = new HitDifference();
    private long mask = -1;
    private int blocks;
    private int limit;
    private int leftInPart = MIN_PART;
    private boolean isDeclining;

    /// How much a block is worth.
    @FunctionalInterface
    interface Scorer {

        /// Returns the score of a block.
        ///
        /// @param kind its class, plus [ReuseModel#CLASSES] times its label
        /// @param age uses since its last one
        double score(int kind, long age);
    }

    AdmissionGuard(Scorer scorer) {
        this.scorer = scorer;
    }

    /// Returns whether declining finds more.
    boolean isDeclining() {
        return isDeclining;
    }

    /// The age at which a new block's promise is trusted: at 0 a class has uses and next to no exposure, so that
    /// hardly anything would be declined.
    static long trustedAge(int blocks) {
        return blocks / TRUSTED_SHARE;
    }

    /// Called when the cache is full, with the number of its blocks.
    void onFull(int blocks) {
        int halvings = Math.max(0, Integer.SIZE - Integer.numberOfLeadingZeros((blocks - 1) / MAX_SAMPLE));
        long wanted = (1L << halvings) - 1;
        this.blocks = blocks;
        limit = Math.max(1, blocks >> halvings);
        if (wanted != mask || limit > declining.capacity()) {
            mask = wanted;
            int capacity = Integer.highestOneBit(Math.max(1, limit - 1)) << 1; // the next power of two
            takingAll = new ShadowCache(false, capacity);
            declining = new ShadowCache(true, capacity);
            difference.clear();
        }
    }

    /// A block is used, whether it is here or not.
    ///
    /// @param kind its class after that, plus [ReuseModel#CLASSES] times its label
    void onUse(long fingerprint, int kind, long now) {
        if (limit == 0 || ((spread(fingerprint) >>> Integer.SIZE) & mask) != 0) {
            return;
        }
        boolean found = declining.use(fingerprint, kind, now);
        if (found == takingAll.use(fingerprint, kind, now)) {
            difference.addEqual();
        } else {
            difference.add(found ? 1 : -1);
            double bound = MIN_GAIN * HitDifference.PARTS * partLength();
            isDeclining = isDeclining ? !difference.isNegative() : difference.isAbove(bound);
        }
        if (--leftInPart <= 0) {
            leftInPart = partLength();
            difference.nextPart();
        }
    }

    /// A block was dropped or replaced: no cache would have it.
    void onRemoved(long fingerprint) {
        if (limit > 0) {
            takingAll.remove(fingerprint);
            declining.remove(fingerprint);
        }
    }

    /// Bytes of both caches.
    long bytes() {
        return 2L * declining.capacity() * ShadowCache.ENTRY_BYTES;
    }

    private int partLength() {
        return Math.max(MIN_PART, limit);
    }

    private static long spread(long fingerprint) {
        long mixed = fingerprint * HASH_MULTIPLIER;
        return (mixed ^ (mixed >>> 32)) * HASH_MULTIPLIER;
    }

    /// Fingerprints of sampled blocks with what their scores follow from.
    private final class ShadowCache {

        static final long ENTRY_BYTES = 2 * Long.BYTES + 4 * Integer.BYTES;

        private static final int NONE = -1;

        /// Entries that a victim is chosen from.
        private static final int DRAWN = 16;

        private final boolean declines;
        private final long[] keys;
        private final long[] stamps;
        private final int[] kinds;
        /// The next entry of the same chain.
        private final int[] next;
        private final int[] heads;
        private int size;
        private long random = HASH_MULTIPLIER;

        /// @param capacity a power of two, or 0
        ShadowCache(boolean declines, int capacity) {
            this.declines = declines;
            keys = new long[capacity];
            stamps = new long[capacity];
            kinds = new int[capacity];
            next = new int[capacity];
            heads = new int[2 * capacity];
            Arrays.fill(heads, NONE);
        }

        int capacity() {
            return keys.length;
        }

        /// A block is used. Returns whether it was here.
        boolean use(long fingerprint, int kind, long now) {
            int entry = find(fingerprint);
            if (entry != NONE) {
                kinds[entry] = kind;
                stamps[entry] = now;
                return true;
            }
            while (size > limit) {
                remove(keys[victim(now)]);
            }
            if (size == limit) {
                int victim = victim(now);
                if (declines
                        && scorer.score(kind, trustedAge(blocks)) < scorer.score(kinds[victim], now - stamps[victim])) {
                    return false;
                }
                remove(keys[victim]);
            }
            keys[size] = fingerprint;
            kinds[size] = kind;
            stamps[size] = now;
            link(size++);
            return false;
        }

        /// Forgets a block. The last entry takes its place.
        void remove(long fingerprint) {
            int entry = find(fingerprint);
            if (entry == NONE) {
                return;
            }
            unlink(entry);
            int last = --size;
            if (entry != last) {
                unlink(last);
                keys[entry] = keys[last];
                kinds[entry] = kinds[last];
                stamps[entry] = stamps[last];
                link(entry);
            }
        }

        /// The entry that is worth least among some, of equals the oldest.
        private int victim(long now) {
            int victim = NONE;
            double lowest = Double.MAX_VALUE;
            for (int i = 0; i < DRAWN; i++) {
                random ^= random << 13;
                random ^= random >>> 7;
                random ^= random << 17;
                int entry = (int) (((random >>> 33) * size) >>> 31);
                double score = scorer.score(kinds[entry], now - stamps[entry]);
                if (victim == NONE || score < lowest || (score == lowest && stamps[entry] < stamps[victim])) {
                    victim = entry;
                    lowest = score;
                }
            }
            return victim;
        }

        private int find(long fingerprint) {
            int entry = heads[bucketOf(fingerprint)];
            while (entry != NONE && keys[entry] != fingerprint) {
                entry = next[entry];
            }
            return entry;
        }

        private void link(int entry) {
            int bucket = bucketOf(keys[entry]);
            next[entry] = heads[bucket];
            heads[bucket] = entry;
        }

        private void unlink(int entry) {
            int bucket = bucketOf(keys[entry]);
            if (heads[bucket] == entry) {
                heads[bucket] = next[entry];
                return;
            }
            int at = heads[bucket];
            while (next[at] != entry) {
                at = next[at];
            }
            next[at] = next[entry];
        }

        private int bucketOf(long fingerprint) {
            return (int) spread(fingerprint) & (heads.length - 1);
        }
    }
}
