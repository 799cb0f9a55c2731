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

    /// Standard deviations of the difference that count as chance.
    private static final double CHANCE = 3;

    /// Longer runs of equal differences count as several.
    private static final int MAX_RUN = 64;

    private static final int PARTS = 8;
    private static final int MIN_PART = 512;
    private static final int MAX_PATIENCE = 64;

    private final ShadowLru shadow = new ShadowLru();
    private final long[] losses = new long[PARTS];
    /// Of what each part has lost: the blocks of one request are found or lost together, so the square of each run
    /// of equal differences.
    private final long[] variances = new long[PARTS];
    private long loss;
    private long varianceOfAll;
    private int run;
    private int part;
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

    /// What has been seen.
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

        /// Of two instances together.
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

    /// The cache is full with so many blocks.
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
            run = 0;
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
        run = Integer.signum(run) == lost && Math.abs(run) < MAX_RUN ? run + lost : lost;
        int variance = 2 * Math.abs(run) - 1;
        losses[part] += lost;
        variances[part] += variance;
        loss += lost;
        varianceOfAll += variance;
        if (!followsLru
                && loss > MAX_LOSS * PARTS * partLength()
                && loss > CHANCE * Math.sqrt((double) varianceOfAll)) {
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
        part = (part + 1) % PARTS;
        loss -= losses[part];
        varianceOfAll -= variances[part];
        losses[part] = 0;
        variances[part] = 0;
    }

    private void beginWindow() {
        Arrays.fill(losses, 0);
        Arrays.fill(variances, 0);
        loss = 0;
        varianceOfAll = 0;
        partsPassed = 0;
    }

    /// Sampled uses: as many as sampled blocks are held.
    private long partLength() {
        return Math.max(MIN_PART, shadow.size());
    }
}
