package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tree.RecordPool;
import java.util.Arrays;
import java.util.BitSet;

/// Records that were brought into host memory because somebody is likely to read them, until that
/// happens or they leave.
///
/// A guess that nobody reads is no use: for policies, for admission to disk and for the odds of
/// reuse that it learns only the read counts that a record was brought for ([#onUsed]). Only a policy
/// that orders by the coming alone hears of nothing else. The same holds of what a hint has brought
/// in: the hint is no use, and the read is one.
///
/// What is held unused, and how often guesses came true, is known for each group of [MemoryShares] apart:
/// one tenant's bad guesses end nobody else's.
///
/// **Threads.** Owned by the store's lock.
final class PrefetchTracker {

    /// What is kept of all outcomes before at each one: the last 256 count for two thirds.
    private static final double DECAY = 1 - 1.0 / 256;

    /// Taken for used before anything is known.
    private static final double PRIOR_USES = 4;

    private final RecordPool pool;
    private final MemoryShares shares;
    private final BitSet records = new BitSet();
    /// On their way because of what somebody said, and nobody waits for them.
    private final BitSet unrequested = new BitSet();
    private Accuracy[] accuracyByGroup = {};
    private long started;
    private long used;
    private long wasted;
    private long unusedBytes;

    /// Of one group.
    private static final class Accuracy {
        private long unusedBytes;
        private double recentlyUsed = PRIOR_USES;
        private double recent = PRIOR_USES;
    }

    PrefetchTracker(RecordPool pool, MemoryShares shares) {
        this.pool = pool;
        this.shares = shares;
    }

    private Accuracy accuracyOf(int group) {
        int known = accuracyByGroup.length;
        if (group >= known) {
            accuracyByGroup = Arrays.copyOf(accuracyByGroup, group + 1);
            Arrays.setAll(accuracyByGroup, each -> each < known ? accuracyByGroup[each] : new Accuracy());
        }
        return accuracyByGroup[group];
    }

    /// A record has a slot, and is about to be read into it.
    void add(int record) {
        records.set(record);
        started++;
        unusedBytes += pool.bytes(record);
        accuracyOf(shares.group(record)).unusedBytes += pool.bytes(record);
    }

    /// Whether a record was brought in, or is about to come, and nobody has used it.
    boolean isUnused(int record) {
        return records.get(record);
    }

    /// A record is on its way for nobody who waits: for a hint, or above what is being put.
    void markUnrequested(int record) {
        unrequested.set(record);
    }

    /// Somebody waits for a record now.
    void markRequested(int record) {
        unrequested.clear(record);
    }

    /// A record has come.
    ///
    /// @return whether that is no use: it was a guess, or nobody has waited for it
    boolean onLoaded(int record) {
        boolean nobodyWaited = unrequested.get(record);
        unrequested.clear(record);
        return nobodyWaited || isUnused(record);
    }

    /// A record is used.
    ///
    /// @return whether it was brought in for this
    boolean onUsed(int record) {
        if (!records.get(record)) {
            return false;
        }
        used++;
        remove(record, 1);
        return true;
    }

    /// A record's slot goes.
    void onSlotReleased(int record) {
        unrequested.clear(record);
        if (records.get(record)) {
            wasted++;
            remove(record, 0);
        }
    }

    private void remove(int record, int success) {
        records.clear(record);
        unusedBytes -= pool.bytes(record);
        Accuracy accuracy = accuracyOf(shares.group(record));
        accuracy.unusedBytes -= pool.bytes(record);
        accuracy.recentlyUsed = DECAY * accuracy.recentlyUsed + success;
        accuracy.recent = DECAY * accuracy.recent + 1;
    }

    /// Odds that one of a group is used, above 0 to 1, by those of late.
    double hitProbability(int group) {
        return accuracyOf(group).recentlyUsed / accuracyOf(group).recent;
    }

    /// Bytes of a group that are here or on their way, and were not used yet.
    long unusedBytes(int group) {
        return accuracyOf(group).unusedBytes;
    }

    /// Checks that each that was not used yet has a slot, and their bytes.
    void validate() {
        long bytes = 0;
        for (int record = records.nextSetBit(0); record >= 0; record = records.nextSetBit(record + 1)) {
            if (pool.hostPage(record) == SlabPool.NONE) {
                throw new AssertionError("record " + record + " was prefetched and has no slot");
            }
            bytes += pool.bytes(record);
        }
        for (int record = unrequested.nextSetBit(0); record >= 0; record = unrequested.nextSetBit(record + 1)) {
            if (pool.hostPage(record) == SlabPool.NONE) {
                throw new AssertionError("record " + record + " is on its way and has no slot");
            }
        }
        if (bytes != unusedBytes || started != used + wasted + records.cardinality()) {
            throw new AssertionError("prefetched are " + bytes + " bytes, counted as " + stats());
        }
    }

    /// What became of them.
    PrefetchStats stats() {
        return new PrefetchStats(started, used, wasted, unusedBytes);
    }
}
