package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.Arrays;

/// Records that were brought into host memory because a caller is likely to read them, until one does or they
/// leave.
///
/// A prefetch does not count as a use, only the read that it was made for ([#onUsed]). That holds for
/// policies, for admission to disk and for the odds of reuse that it learns. Only a policy that orders by
/// arrival gets nothing else. The same holds for blocks that a hint brings in: the hint is not a use, but the
/// read is.
///
/// Unused bytes and the hit rate of guesses are kept for each group of [MemoryShares] apart: one tenant's bad
/// guesses do not stop another's.
///
/// **Threads.** Owned by the store's lock.
final class PrefetchTracker {

    /// Weight that earlier outcomes keep at each new one: the last 256 count for two thirds.
    private static final double DECAY = 1 - 1.0 / 256;

    /// Taken for used before anything is known.
    private static final double PRIOR_USES = 4;

    private final RecordPool pool;
    private final MemoryShares shares;
    private Accuracy[] accuracyByGroup = {};
    private long started;
    private long used;
    private long wasted;
    private long unusedBytes;

    /// Prefetch results of one group.
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
        pool.setFlags(record, RecordFlags.PREFETCHED, true);
        started++;
        unusedBytes += pool.bytes(record);
        accuracyOf(shares.group(record)).unusedBytes += pool.bytes(record);
    }

    /// Returns whether a record was prefetched, or is about to come, and was not used.
    boolean isUnused(int record) {
        return RecordFlags.has(pool.flags(record), RecordFlags.PREFETCHED);
    }

    /// A record comes without a caller that waits: for a hint, or as the parent of a block being put.
    void markUnrequested(int record) {
        pool.setFlags(record, RecordFlags.UNREQUESTED, true);
    }

    /// A caller waits for a record now.
    void markRequested(int record) {
        pool.setFlags(record, RecordFlags.UNREQUESTED, false);
    }

    /// A record has come.
    ///
    /// @return whether that does not count as a use: it was a guess, or no caller has waited for it
    boolean onLoaded(int record) {
        boolean unawaited = RecordFlags.has(pool.flags(record), RecordFlags.UNREQUESTED);
        pool.setFlags(record, RecordFlags.UNREQUESTED, false);
        return unawaited || isUnused(record);
    }

    /// A record is used.
    ///
    /// @return whether it was brought in for this
    boolean onUsed(int record) {
        if (!isUnused(record)) {
            return false;
        }
        used++;
        remove(record, 1);
        return true;
    }

    /// A record's slot goes.
    void onSlotReleased(int record) {
        pool.setFlags(record, RecordFlags.UNREQUESTED, false);
        if (isUnused(record)) {
            wasted++;
            remove(record, 0);
        }
    }

    private void remove(int record, int success) {
        pool.setFlags(record, RecordFlags.PREFETCHED, false);
        unusedBytes -= pool.bytes(record);
        Accuracy accuracy = accuracyOf(shares.group(record));
        accuracy.unusedBytes -= pool.bytes(record);
        accuracy.recentlyUsed = DECAY * accuracy.recentlyUsed + success;
        accuracy.recent = DECAY * accuracy.recent + 1;
    }

    /// Returns the odds that a prefetch of a group is used, above 0 to 1, from its recent ones.
    double hitProbability(int group) {
        return accuracyOf(group).recentlyUsed / accuracyOf(group).recent;
    }

    /// Returns the bytes of a group that are here or on their way, and were not used yet.
    long unusedBytes(int group) {
        return accuracyOf(group).unusedBytes;
    }

    /// Checks that each unused record has a slot, and their bytes.
    void validate() {
        long bytes = 0;
        long count = 0;
        for (int record = 0; record < pool.highWaterMark(); record++) {
            boolean tracked = ControlWord.state(pool.control(record)) != ControlWord.FREE
                    && RecordFlags.isPrefetch(pool.flags(record));
            if (tracked && pool.hostPage(record) == SlabPool.NONE) {
                throw new AssertionError("record " + record + " was prefetched or is on its way, and has no slot");
            }
            count += tracked && isUnused(record) ? 1 : 0;
            bytes += tracked && isUnused(record) ? pool.bytes(record) : 0;
        }
        if (bytes != unusedBytes || started != used + wasted + count) {
            throw new AssertionError("prefetched are " + bytes + " bytes, counted as " + stats());
        }
    }

    /// Returns the outcomes of the prefetches.
    PrefetchStats stats() {
        return new PrefetchStats(started, used, wasted, unusedBytes);
    }
}
