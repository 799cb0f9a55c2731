package io.kvcache.core.store;

import static io.kvcache.core.tree.RecordPool.NONE;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.ObjIntConsumer;
import java.util.function.Predicate;

/// Tells policies what somebody knows of objects, as [HintApplier] does of blocks: of those that are
/// in host memory, and of those on disk that they are over. Lists are gone through a
/// bounded number of objects a turn of the lock.
///
/// **Threads.** Any.
public final class ObjectHintApplier {

    private final BlockTree tree;
    private final RecordPool pool;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;
    private final RecordStates recordStates;
    private final LoadPath loadPath;
    private final AccessDrain accessDrain;
    private final HintApplier hintApplier;
    private final EvictNextMarker evictNextMarker;
    private final ReentrantLock lock;

    ObjectHintApplier(
            StoreComponents parts,
            RecordStates recordStates,
            LoadPath loadPath,
            AccessDrain accessDrain,
            HintApplier hintApplier,
            ReentrantLock lock) {
        tree = parts.tree();
        pool = parts.pool();
        policies = parts.slotClassPolicies();
        shares = parts.memoryShares();
        this.recordStates = recordStates;
        this.loadPath = loadPath;
        this.accessDrain = accessDrain;
        this.hintApplier = hintApplier;
        evictNextMarker = new EvictNextMarker(parts, recordStates);
        this.lock = lock;
    }

    /// Makes objects the next victims, in memory and on disk, the last of them first.
    ///
    /// @param namespace of the objects
    /// @return of how many that was said
    public int demote(NamespaceEntry namespace, List<BlockKey> keys) {
        return forEachKey(keys.reversed(), key -> {
            int record = tree.findAny(key.hi(), key.lo());
            return record != NONE
                    && evictNextMarker.isSettled(record)
                    && RecordFlags.isObjectOf(pool.flags(record), namespace.id())
                    && evictNextMarker.demoteUnlessContinued(record);
        });
    }

    /// Says of which class of requests objects are.
    ///
    /// @param reuseClass 0 to [EvictionPolicy#REUSE_CLASSES], exclusive
    /// @return of how many it was said, 0 where the policy makes no use of it
    public int label(NamespaceEntry namespace, List<BlockKey> keys, int reuseClass) {
        return applyToPolicies(namespace, keys, (policy, record) -> policy.label(record, reuseClass));
    }

    /// Says how much of what is in objects matters.
    ///
    /// @param halvings 0 to [EvictionPolicy#MAX_HALVINGS]
    /// @return of how many it was said, 0 where the policy makes no use of it
    public int setWeights(NamespaceEntry namespace, List<BlockKey> keys, int halvings) {
        return applyToPolicies(namespace, keys, (policy, record) -> policy.setWeight(record, halvings));
    }

    private int applyToPolicies(NamespaceEntry namespace, List<BlockKey> keys, ObjIntConsumer<EvictionPolicy> saying) {
        if (!policies.usesLabels()) {
            return 0;
        }
        policies.state().allocateLabels(lock);
        return forEachKey(keys, key -> {
            int record = find(key, namespace.id());
            if (record != NONE) {
                saying.accept(recordStates.policyOf(record), record);
            }
            return record != NONE;
        });
    }

    /// Requests for objects are known to come: policies that look ahead are told, also of those
    /// that are not here; to others those that are count as used.
    ///
    /// @param uses until then; those that are not worth their room as long are passed over
    /// @return of how many it was said
    public int expect(NamespaceEntry namespace, List<BlockKey> keys, long uses) {
        return forEachKey(keys, key -> {
            int record = find(key, namespace.id());
            if (record == NONE) {
                return policies.usesAnnouncements() && announce(namespace, key, uses);
            }
            EvictionPolicy policy = recordStates.policyOf(record);
            if (!hintApplier.isKept(policy, uses)) {
                return false;
            }
            if (policies.usesAnnouncements()) {
                policy.announce(pool.keyLo(record));
                policy.expect(record);
            } else {
                policy.touch(record);
            }
            return true;
        });
    }

    /// Tells of an object that is not in host memory: of one that a disk has the policy of its
    /// size, of one that nobody has those of all sizes that its tenant holds any of, as it has none
    /// yet.
    ///
    /// @return whether that is all that is done for it: what is on disk is brought in by the caller
    private boolean announce(NamespaceEntry namespace, BlockKey key, long uses) {
        int record = tree.findAny(key.hi(), key.lo());
        if (record != NONE) {
            boolean own =
                    evictNextMarker.isSettled(record) && RecordFlags.isObjectOf(pool.flags(record), namespace.id());
            // It has no slot that would tell its size.
            if (own && announce(policies.getOrCreate(loadPath.classOf(record).id(), shares.group(record)), key, uses)) {
                evictNextMarker.expect(record);
            }
            return false;
        }
        boolean told = false;
        for (int size = 0; size < policies.classes(); size++) {
            EvictionPolicy policy = policies.find(size, shares.groupOf(namespace.id()));
            told |= policy != null && announce(policy, key, uses);
        }
        return told;
    }

    private boolean announce(EvictionPolicy policy, BlockKey key, long uses) {
        boolean worth = hintApplier.isKept(policy, uses);
        if (worth) {
            policy.announce(key.lo());
        }
        return worth;
    }

    /// Does something to each of many objects, a bounded number a turn of the lock.
    ///
    /// @param done under the lock, answers whether it was
    /// @return how often it was
    private int forEachKey(List<BlockKey> keys, Predicate<BlockKey> done) {
        int count = 0;
        for (int from = 0; from < keys.size(); from += HintApplier.BATCH) {
            lock.lock();
            try {
                accessDrain.drain();
                for (BlockKey key : keys.subList(from, Math.min(keys.size(), from + HintApplier.BATCH))) {
                    count += done.test(key) ? 1 : 0;
                }
            } finally {
                lock.unlock();
            }
        }
        return count;
    }

    /// The record of an object that is resident, if it is of a namespace; under the lock.
    private int find(BlockKey key, int namespace) {
        long handle = tree.find(key.hi(), key.lo());
        boolean own = RecordHandle.isFound(handle)
                && RecordFlags.isObjectOf(pool.flags(RecordHandle.record(handle)), namespace);
        return own ? RecordHandle.record(handle) : NONE;
    }
}
