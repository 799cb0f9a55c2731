package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;
import static io.kvcache.core.tree.RecordPool.NONE;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.MemoryShares.SlotClassPolicies;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.RecordStates.ExpiredBlocks;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntPredicate;
import java.util.function.ObjIntConsumer;
import java.util.function.Predicate;

/// Passes to policies the hints that callers give on blocks and objects: dead, expected by a request, of a class,
/// or of a weight. Chains and lists are processed a bounded number of blocks or objects for each turn of the lock.
///
/// A hint that a block is dead reaches it in host memory, on the disk that alone has it, and in the write-back
/// queue. Hints on objects reach those in host memory; of objects on disk alone only the hint that they are dead
/// applies.
///
/// Blocks that readers are likely to ask for next are brought in from disk here too ([#startPrefetch]).
///
/// **Threads.** Any.
public final class HintApplier {

    /// Blocks processed in one turn of the lock.
    static final int BATCH = 256;

    /// Most uses of other blocks before that of a prefetched one: a few clients that read a sequence each.
    private static final int MAX_PREFETCH_DISTANCE = 64;

    private static final int MAX_PREFETCH_SHARE = 8;

    /// Most children of a block that is prefetched from. A block with more is a common beginning, and its next
    /// block a mere guess.
    private static final int MAX_CONTINUATIONS = 16;

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final NamespaceRegistry namespaceRegistry;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;
    private final SlotAllocator slotAllocator;
    private final RecordLookup lookup;
    private final PrefetchTracker prefetchTracker;
    private final ExpiredBlocks expiredBlocks;
    private final ReentrantLock lock;

    HintApplier(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        slabs = store.slabs;
        namespaceRegistry = store.namespaceRegistry;
        policies = store.policies;
        shares = store.shares;
        disks = store.disks;
        writeBackQueue = store.writeBackQueue;
        recordStates = store.recordStates;
        slotAllocator = store.slotAllocator;
        lookup = store.lookup;
        lock = store.lock;
        prefetchTracker = recordStates.prefetched();
        expiredBlocks = recordStates.expired();
    }

    /// Makes blocks of the chain from `from` on the next victims, in memory and on disk. The tail goes first, so
    /// that each is a leaf when its turn comes.
    public void demote(BlockChain chain, int from) {
        for (int end = chain.length(); end > from; end -= BATCH) {
            var _ = eachFromTail(chain, Math.max(from, end - BATCH), end, record -> {
                demote(record);
                return true;
            });
        }
    }

    /// Makes the end of a chain the next victims, in memory and on disk, tail first. It spares blocks from which
    /// other chains have continued, and all blocks before those.
    ///
    /// @param chain only the blocks from `from` on are considered
    /// @return blocks that are next victims now
    public int release(BlockChain chain, int from) {
        int[] released = {0};
        boolean goesOn = true;
        for (int end = chain.length(); end > from && goesOn; end -= BATCH) {
            goesOn = eachFromTail(chain, Math.max(from, end - BATCH), end, record -> {
                boolean ends = demoteUnlessContinued(record);
                released[0] += ends ? 1 : 0;
                return ends;
            });
        }
        return released[0];
    }

    /// @param action answers whether to go on
    /// @return whether it did for all
    private boolean eachFromTail(BlockChain chain, int from, int end, IntPredicate action) {
        lock.lock();
        try {
            lookup.drainUses();
            int namespace = namespaceRegistry.idOf(chain.namespace());
            for (int index = end - 1; index >= from; index--) {
                int record = findSettled(chain, index, namespace);
                if (record != NONE && !action.test(record)) {
                    return false;
                }
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Labels the resident blocks of a chain with a class of requests.
    ///
    /// @param reuseClass 0 to [EvictionPolicy#REUSE_CLASSES], exclusive
    /// @return labelled blocks, 0 where the policy makes no use of labels
    public int label(BlockChain chain, int from, int reuseClass) {
        return applyToPolicies(
                chain, from, chain.length(), (policy, record, index) -> policy.label(record, reuseClass));
    }

    /// Weighs the resident blocks of a chain by how much their content matters.
    ///
    /// @param halvings by index from `from` on, each 0 to [EvictionPolicy#MAX_HALVINGS]
    /// @return weighed blocks, 0 where the policy makes no use of weights
    public int setWeights(BlockChain chain, int from, int[] halvings) {
        int end = from + halvings.length;
        int told = applyToPolicies(
                chain, from, end, (policy, record, index) -> policy.setWeight(record, halvings[index - from]));
        for (int to = end; to > from && told > 0 && writeBackQueue.countsAncestorUses(); to -= BATCH) {
            var _ = eachFromTail(chain, Math.max(from, to - BATCH), to, record -> {
                writeBackQueue.onWeightChanged(record);
                return true;
            });
        }
        return told;
    }

    private interface PolicyAction {
        void apply(EvictionPolicy policy, int record, int index);
    }

    private int applyToPolicies(BlockChain chain, int from, int end, PolicyAction policyAction) {
        int told = 0;
        if (policies.usesLabels()) {
            policies.state().allocateLabels(lock);
        }
        for (int at = from; at < end && policies.usesLabels(); at += BATCH) {
            told += applyBatch(chain, at, Math.min(end, at + BATCH), policyAction);
        }
        return told;
    }

    private int applyBatch(BlockChain chain, int from, int end, PolicyAction policyAction) {
        lock.lock();
        try {
            lookup.drainUses();
            int namespace = namespaceRegistry.idOf(chain.namespace());
            int told = 0;
            for (int index = from; index < end; index++) {
                int record = find(chain, index, namespace);
                if (record != NONE) {
                    policyAction.apply(recordStates.policyOf(record), record, index);
                    told++;
                }
            }
            return told;
        } finally {
            lock.unlock();
        }
    }

    /// Announces a request for a chain: policies that look ahead get all its blocks.
    ///
    /// @return whether they did; else the caller must count the resident ones as used
    public boolean expect(BlockChain chain) {
        if (!policies.usesAnnouncements()) {
            return false;
        }
        NamespaceEntry entry = namespaceRegistry.require(chain.namespace());
        for (int from = 0; from < chain.length(); from += BATCH) {
            expect(chain, entry, from);
        }
        return true;
    }

    private void expect(BlockChain chain, NamespaceEntry entry, int from) {
        lock.lock();
        try {
            lookup.drainUses();
            EvictionPolicy policy = policies.getOrCreate(entry.slotClass().id(), shares.groupOf(entry.id()));
            int end = Math.min(chain.length(), from + BATCH);
            for (int index = from; index < end; index++) {
                policy.announce(chain.keyLo(index));
                int record = findSettled(chain, index, entry.id());
                if (record != NONE) {
                    expect(record);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /// Returns whether blocks whose next use is this many uses ahead are worth their room until then. They are if
    /// room is unused, or if one use in that time is more than the next victim promises. A policy without scores
    /// keeps a block for as long as the next victim has been kept.
    public boolean isWorthKeeping(NamespaceEntry entry, long uses) {
        lock.lock();
        try {
            lookup.drainUses();
            EvictionPolicy policy = policies.find(entry.slotClass().id(), shares.groupOf(entry.id()));
            return policy == null || isKept(policy, uses);
        } finally {
            lock.unlock();
        }
    }

    /// As [#isWorthKeeping], for the blocks of one policy; under the lock.
    private boolean isKept(EvictionPolicy policy, long uses) {
        if (uses == 0 || slabs.freeSlabs() > 0 || policy.size() == 0) {
            return true;
        }
        double lowest = policy.lowestScore();
        return Double.isNaN(lowest) ? policies.now() - policy.victimLastUse() >= uses : 1.0 / uses >= lowest;
    }

    /// Returns the clock that orders uses.
    public long clock() {
        lock.lock();
        try {
            lookup.drainUses();
            return policies.now();
        } finally {
            lock.unlock();
        }
    }

    /// Returns the record of a block that is in host memory or on a disk, and not on its way there, if it is of
    /// the namespace; under the lock.
    private int findSettled(BlockChain chain, int index, int namespace) {
        int record = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        boolean own = record != NONE && isSettled(record) && RecordFlags.isBlockOf(pool.flags(record), namespace);
        return own ? record : NONE;
    }

    /// Returns the record of a block that is resident, if it is of the namespace; under the lock.
    private int find(BlockChain chain, int index, int namespace) {
        long handle = tree.find(chain.keyHi(index), chain.keyLo(index));
        boolean own = RecordHandle.isFound(handle)
                && RecordFlags.isBlockOf(pool.flags(RecordHandle.record(handle)), namespace);
        return own ? RecordHandle.record(handle) : NONE;
    }

    /// Makes a record a next victim, unless other chains have continued from it.
    ///
    /// @return whether it is one
    private boolean demoteUnlessContinued(int record) {
        if (expiredBlocks.hasLiveChildren(record)) {
            return false;
        }
        expiredBlocks.add(record);
        if (recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).demote(record);
            writeBackQueue.cancelWrite(record);
        } else if (recordStates.stateOf(record) == ControlWord.ON_DISK) {
            disks.order(record).demote(record);
        }
        return true;
    }

    /// Makes a record in host memory a next victim there, whatever is below it.
    private void demote(int record) {
        if (!demoteUnlessContinued(record) && recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).demote(record);
        }
    }

    /// A record will be used soon, in spite of any hint before: it is not dead any longer.
    private void expect(int record) {
        boolean resident = recordStates.stateOf(record) == ControlWord.SEALED;
        if (expiredBlocks.contains(record) && !resident) {
            disks.order(record).touch(record);
        }
        expiredBlocks.onUsed(record);
        if (resident) {
            recordStates.policyOf(record).expect(record);
        }
    }

    /// Returns whether a record is in host memory or on a disk, and not on its way there.
    private boolean isSettled(int record) {
        int state = recordStates.stateOf(record);
        return state == ControlWord.SEALED || state == ControlWord.ON_DISK;
    }

    /// Makes objects the next victims, in memory and on disk, the last of them first.
    ///
    /// @param namespace of the objects
    /// @return objects that are next victims now
    public int demote(NamespaceEntry namespace, List<BlockKey> keys) {
        return forEachKey(keys.reversed(), key -> {
            int record = tree.findAny(key.hi(), key.lo());
            return record != NONE
                    && isSettled(record)
                    && RecordFlags.isObjectOf(pool.flags(record), namespace.id())
                    && demoteUnlessContinued(record);
        });
    }

    /// Labels objects with a class of requests.
    ///
    /// @param reuseClass 0 to [EvictionPolicy#REUSE_CLASSES], exclusive
    /// @return labelled objects, 0 where the policy makes no use of labels
    public int label(NamespaceEntry namespace, List<BlockKey> keys, int reuseClass) {
        return applyToPolicies(namespace, keys, (policy, record) -> policy.label(record, reuseClass));
    }

    /// Weighs objects by how much their content matters.
    ///
    /// @param halvings 0 to [EvictionPolicy#MAX_HALVINGS]
    /// @return weighed objects, 0 where the policy makes no use of weights
    public int setWeights(NamespaceEntry namespace, List<BlockKey> keys, int halvings) {
        return applyToPolicies(namespace, keys, (policy, record) -> policy.setWeight(record, halvings));
    }

    private int applyToPolicies(NamespaceEntry namespace, List<BlockKey> keys, ObjIntConsumer<EvictionPolicy> saying) {
        if (!policies.usesLabels()) {
            return 0;
        }
        policies.state().allocateLabels(lock);
        return forEachKey(keys, key -> {
            int record = findObject(key, namespace.id());
            if (record != NONE) {
                saying.accept(recordStates.policyOf(record), record);
            }
            return record != NONE;
        });
    }

    /// Announces requests for objects. Policies that look ahead get all of them, even unknown ones; for other
    /// policies the known ones count as used.
    ///
    /// @param uses uses until then; objects that are not worth their room as long are skipped
    /// @return announced objects
    public int expect(NamespaceEntry namespace, List<BlockKey> keys, long uses) {
        return forEachKey(keys, key -> {
            int record = findObject(key, namespace.id());
            if (record == NONE) {
                return policies.usesAnnouncements() && announce(namespace, key, uses);
            }
            EvictionPolicy policy = recordStates.policyOf(record);
            if (!isKept(policy, uses)) {
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

    /// Announces an object that is not in host memory. An object on disk is announced to the policy of its size.
    /// An unknown object has no size yet, so it is announced to the policies of all sizes that its tenant has.
    ///
    /// @return whether that is all that is done for it: the caller brings in an object that is on disk
    private boolean announce(NamespaceEntry namespace, BlockKey key, long uses) {
        int record = tree.findAny(key.hi(), key.lo());
        if (record != NONE) {
            boolean own = isSettled(record) && RecordFlags.isObjectOf(pool.flags(record), namespace.id());
            // It has no slot that would tell its size.
            if (own
                    && announce(
                            policies.getOrCreate(slotAllocator.classOf(record).id(), shares.group(record)),
                            key,
                            uses)) {
                expect(record);
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
        boolean worth = isKept(policy, uses);
        if (worth) {
            policy.announce(key.lo());
        }
        return worth;
    }

    /// Applies an action to many objects, a bounded number for each turn of the lock.
    ///
    /// @param done called under the lock; returns whether the object counts
    /// @return objects that count
    private int forEachKey(List<BlockKey> keys, Predicate<BlockKey> done) {
        int count = 0;
        for (int from = 0; from < keys.size(); from += BATCH) {
            lock.lock();
            try {
                lookup.drainUses();
                for (BlockKey key : keys.subList(from, Math.min(keys.size(), from + BATCH))) {
                    count += done.test(key) ? 1 : 0;
                }
            } finally {
                lock.unlock();
            }
        }
        return count;
    }

    /// Returns the record of an object that is resident, if it is of the namespace; under the lock.
    private int findObject(BlockKey key, int namespace) {
        long handle = tree.find(key.hi(), key.lo());
        boolean own = RecordHandle.isFound(handle)
                && RecordFlags.isObjectOf(pool.flags(RecordHandle.record(handle)), namespace);
        return own ? RecordHandle.record(handle) : NONE;
    }

    /// Starts to bring in a record that is on disk alone, if it is worth the room, and the block above it is in
    /// host memory or on its way there.
    ///
    /// It takes only unused room, or the place of a block that promises less. The promise of a prefetch is one use
    /// within [#MAX_PREFETCH_DISTANCE] uses, times the odds that earlier ones of these were used. Blocks that wait
    /// to be written are not evicted for it. A tenant's unused prefetches hold at most an eighth of its guaranteed
    /// memory, so that seldom good guesses take less and less, for each tenant apart. Blocks hinted to be dead are
    /// not brought in.
    ///
    /// @param generation of its handle
    /// @return whether it does; the caller starts the read then
    public boolean startPrefetch(int record, int generation) {
        lock.lock();
        try {
            long control = pool.control(record);
            boolean away =
                    ControlWord.state(control) == ControlWord.ON_DISK && ControlWord.generation(control) == generation;
            if (!away
                    || !slotAllocator.isParentAvailable(record)
                    || expiredBlocks.contains(record)
                    || isOverLimit(record)) {
                return false;
            }
            lookup.drainUses();
            if (!isWorthSlot(record) || !slotAllocator.startPrefetch(record)) {
                return false;
            }
            prefetchTracker.add(record);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Returns the likeliest continuation of a block that is on disk alone: the most recently used of its
    /// children.
    ///
    /// @param handle of the block, which may have gone by now
    /// @return its handle, or [RecordHandle#MISS] when all known children are in host memory, or there are none
    public long likelyNextOnDisk(long handle) {
        lock.lock();
        try {
            int record = RecordHandle.record(handle);
            if (ControlWord.generation(pool.control(record)) != RecordHandle.generation(handle)) {
                return RecordHandle.MISS;
            }
            int[] next = {RecordView.NONE};
            boolean few = tree.allChildrenMatch(record, MAX_CONTINUATIONS, child -> {
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
        return prefetchTracker.unusedBytes(group) + pool.bytes(record)
                > shares.guaranteedBytes(group) / MAX_PREFETCH_SHARE;
    }

    private boolean isWorthSlot(int record) {
        EvictionPolicy policy = policies.find(slotAllocator.classOf(record).id(), shares.group(record));
        if (slabs.freeSlabs() > 0 || policy == null || policy.size() == 0) {
            return true;
        }
        double rate = prefetchTracker.hitProbability(shares.group(record)) / MAX_PREFETCH_DISTANCE;
        double lowest = policy.lowestScore();
        boolean byAge = Double.isNaN(lowest);
        return byAge ? (policies.now() - policy.victimLastUse()) * rate >= 1 : rate >= lowest;
    }

    /// Returns the outcomes of the prefetches that were begun.
    public PrefetchStats prefetchStats() {
        lock.lock();
        try {
            lookup.drainUses();
            return prefetchTracker.stats();
        } finally {
            lock.unlock();
        }
    }
}
