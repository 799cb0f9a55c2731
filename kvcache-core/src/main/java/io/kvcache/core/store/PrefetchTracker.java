package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.HostStore.PrefetchStats;
import io.kvcache.core.store.RecordStates.ExpiredBlocks;
import io.kvcache.core.store.SlotAllocator.SlotClassPolicies;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.locks.ReentrantLock;

/// Records that were brought into host memory because a caller is likely to read them, until that
/// happens or they leave.
///
/// A guess that is not read is no use: for policies, for admission to disk and for the odds of
/// reuse that it learns only the read counts that a record was brought for ([#onUsed]). Only a policy
/// that orders by the coming alone hears of nothing else. The same holds of what a hint has brought
/// in: the hint is no use, and the read is one.
///
/// What is held unused, and how often guesses came true, is known for each group of [MemoryShares] apart:
/// one tenant's bad guesses do not end another's.
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
    /// On their way because of a hint, without a caller that waits for them.
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

    /// Whether a record was brought in, or is about to come, and was not used.
    boolean isUnused(int record) {
        return records.get(record);
    }

    /// A record is on its way without a caller that waits: for a hint, or above what is being put.
    void markUnrequested(int record) {
        unrequested.set(record);
    }

    /// A caller waits for a record now.
    void markRequested(int record) {
        unrequested.clear(record);
    }

    /// A record has come.
    ///
    /// @return whether that is no use: it was a guess, or no caller has waited for it
    boolean onLoaded(int record) {
        boolean unawaited = unrequested.get(record);
        unrequested.clear(record);
        return unawaited || isUnused(record);
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

    /// Gives records that are likely to be read soon a slot, ahead of their reader.
    ///
    /// Only in unused room, or in the place of what promises less: one use within [#MAX_DISTANCE]
    /// uses, by the odds that earlier ones of these were used, is held against what the next victim
    /// promises. Nothing goes for them that waits to be written, and an eighth of what is sure to its
    /// tenant is all that they hold unused. So guesses that come true seldom take less and less, of
    /// each tenant apart. What a hint said is over is not brought in.
    ///
    /// **Threads.** Any.
    public static final class PrefetchAdmission {

        /// Uses of other blocks that come first at most: a few clients that read a sequence each.
        private static final int MAX_DISTANCE = 64;

        private static final int MAX_SHARE = 8;

        /// A block with more behind it is a beginning that all share: which of them comes is a mere
        /// guess.
        private static final int MAX_CHILDREN = 16;

        private final RecordPool pool;
        private final BlockTree tree;
        private final SlabPool slabs;
        private final SlotClassPolicies policies;
        private final MemoryShares shares;
        private final DiskUsageTable disks;
        private final PrefetchTracker prefetchTracker;
        private final ExpiredBlocks expiredBlocks;
        private final SlotReservations reservations;
        private final RecordLookup lookup;
        private final ReentrantLock lock;

        PrefetchAdmission(
                BlockTree tree,
                SlabPool slabs,
                SlotClassPolicies policies,
                MemoryShares shares,
                DiskUsageTable disks,
                RecordStates recordStates,
                SlotReservations reservations,
                RecordLookup lookup,
                ReentrantLock lock) {
            pool = tree.pool();
            this.tree = tree;
            this.slabs = slabs;
            this.policies = policies;
            this.shares = shares;
            this.disks = disks;
            this.reservations = reservations;
            this.lookup = lookup;
            this.lock = lock;
            prefetchTracker = recordStates.prefetched();
            expiredBlocks = recordStates.expired();
        }

        /// Begins to bring in a record that is on disk alone, if it is worth the room, and the block
        /// above it is in host memory or on its way there.
        ///
        /// @param generation of its handle
        /// @return whether it does; the caller has it read then
        public boolean start(int record, int generation) {
            lock.lock();
            try {
                long control = pool.control(record);
                boolean away = ControlWord.state(control) == ControlWord.ON_DISK
                        && ControlWord.generation(control) == generation;
                if (!away
                        || !reservations.isParentAvailable(record)
                        || expiredBlocks.contains(record)
                        || isOverLimit(record)) {
                    return false;
                }
                lookup.drainUses();
                if (!isWorthSlot(record) || !reservations.startPrefetch(record)) {
                    return false;
                }
                prefetchTracker.add(record);
                return true;
            } finally {
                lock.unlock();
            }
        }

        /// The likeliest continuation of a block that is on disk alone: of the blocks behind it the one
        /// that was used last.
        ///
        /// @param handle of the block, which may have gone by now
        /// @return its handle, or [RecordHandle#MISS] when all that is known behind the block is in host
        ///     memory, or nothing is
        public long likelyNextOnDisk(long handle) {
            lock.lock();
            try {
                int record = RecordHandle.record(handle);
                if (ControlWord.generation(pool.control(record)) != RecordHandle.generation(handle)) {
                    return RecordHandle.MISS;
                }
                int[] next = {RecordView.NONE};
                boolean few = tree.allChildrenMatch(record, MAX_CHILDREN, child -> {
                    boolean away = ControlWord.state(pool.control(child)) == ControlWord.ON_DISK
                            && !expiredBlocks.contains(child);
                    if (away && (next[0] == RecordView.NONE || lastUse(child) > lastUse(next[0]))) {
                        next[0] = child;
                    }
                    return true;
                });
                return few && next[0] != RecordView.NONE ? pool.handle(next[0]) : RecordHandle.MISS;
            } finally {
                lock.unlock();
            }
        }

        private long lastUse(int record) {
            return disks.order(record).lastUse(record);
        }

        private boolean isOverLimit(int record) {
            int group = shares.group(record);
            return prefetchTracker.unusedBytes(group) + pool.bytes(record) > shares.guaranteedBytes(group) / MAX_SHARE;
        }

        private boolean isWorthSlot(int record) {
            EvictionPolicy policy = policies.find(reservations.classOf(record).id(), shares.group(record));
            if (slabs.freeSlabs() > 0 || policy == null || policy.size() == 0) {
                return true;
            }
            double rate = prefetchTracker.hitProbability(shares.group(record)) / MAX_DISTANCE;
            double lowest = policy.lowestScore();
            boolean byAge = Double.isNaN(lowest);
            return byAge ? (policies.now() - policy.victimLastUse()) * rate >= 1 : rate >= lowest;
        }

        /// What became of those that were begun.
        public PrefetchStats stats() {
            lock.lock();
            try {
                lookup.drainUses();
                return prefetchTracker.stats();
            } finally {
                lock.unlock();
            }
        }
    }
}
