package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;

/// Gives records that somebody is likely to read soon a slot, ahead of him.
///
/// Only in room that nobody uses, or in the place of what promises less: one use within [#MAX_DISTANCE]
/// uses, by the odds that earlier ones of these were used, is held against what the next victim
/// promises. Nothing goes for them that waits to be written, and an eighth of what is sure to its
/// tenant is all that they hold unused. So guesses that come true seldom take less and less, of
/// each tenant apart. What somebody said is over is not brought in.
///
/// **Threads.** Any.
public final class PrefetchAdmission {

    /// Uses of other blocks that come first at most: a few clients that read a sequence each.
    private static final int MAX_DISTANCE = 64;

    private static final int MAX_SHARE = 8;

    /// A block with more behind it is a beginning that all share: which of them comes is anybody's
    /// guess.
    private static final int MAX_CHILDREN = 16;

    private final RecordPool pool;
    private final SlabPool slabs;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;
    private final PrefetchTracker prefetchTracker;
    private final DiskUsageTable disks;
    private final BlockTree tree;
    private final ExpiredBlocks expiredBlocks;
    private final LoadPath loadPath;
    private final AccessDrain accessDrain;
    private final ReentrantLock lock;

    PrefetchAdmission(StoreComponents parts, LoadPath loadPath, AccessDrain accessDrain, ReentrantLock lock) {
        pool = parts.pool();
        slabs = parts.slabs();
        policies = parts.slotClassPolicies();
        shares = parts.memoryShares();
        prefetchTracker = parts.prefetchTracker();
        disks = parts.diskUsageTable();
        tree = parts.tree();
        expiredBlocks = parts.expiredBlocks();
        this.loadPath = loadPath;
        this.accessDrain = accessDrain;
        this.lock = lock;
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
            boolean away =
                    ControlWord.state(control) == ControlWord.ON_DISK && ControlWord.generation(control) == generation;
            if (!away || !loadPath.isParentAvailable(record) || expiredBlocks.contains(record) || isOverLimit(record)) {
                return false;
            }
            accessDrain.drain();
            if (!isWorthSlot(record) || !loadPath.startPrefetch(record)) {
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
                boolean away =
                        ControlWord.state(pool.control(child)) == ControlWord.ON_DISK && !expiredBlocks.contains(child);
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
        EvictionPolicy policy = policies.find(loadPath.classOf(record).id(), shares.group(record));
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
            accessDrain.drain();
            return prefetchTracker.stats();
        } finally {
            lock.unlock();
        }
    }
}
