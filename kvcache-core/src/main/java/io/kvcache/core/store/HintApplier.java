package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;
import static io.kvcache.core.tree.RecordPool.NONE;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.SlotAllocator.SlotClassPolicies;
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

/// Tells policies what callers know of blocks and objects: that they are worth nothing any more, that a request for
/// them will come, of what class they are, and how much they matter. Chains and lists are gone through a bounded
/// number of blocks or objects a turn of the lock.
///
/// A hint that something is over reaches it in host memory, on the disk that alone has it, and among what waits to be
/// written. Hints about objects reach those in host memory, and of those on disk only that they are over.
///
/// **Threads.** Any.
public final class HintApplier {

    /// Blocks that are told of in one turn of the lock.
    static final int BATCH = 256;

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final NamespaceRegistry namespaceRegistry;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;
    private final SlotReservations reservations;
    private final RecordLookup lookup;
    private final ReentrantLock lock;

    HintApplier(
            BlockTree tree,
            SlabPool slabs,
            NamespaceRegistry namespaceRegistry,
            SlotClassPolicies policies,
            MemoryShares shares,
            DiskUsageTable disks,
            WriteBackQueue writeBackQueue,
            RecordStates recordStates,
            SlotReservations reservations,
            RecordLookup lookup,
            ReentrantLock lock) {
        pool = tree.pool();
        this.tree = tree;
        this.slabs = slabs;
        this.namespaceRegistry = namespaceRegistry;
        this.policies = policies;
        this.shares = shares;
        this.disks = disks;
        this.writeBackQueue = writeBackQueue;
        this.recordStates = recordStates;
        this.reservations = reservations;
        this.lookup = lookup;
        this.lock = lock;
    }

    /// Makes blocks of the chain from `from` on the next victims, in memory and on disk: tail
    /// first, so that each is a leaf when its turn comes.
    public void demote(BlockChain chain, int from) {
        for (int end = chain.length(); end > from; end -= BATCH) {
            var _ = eachFromTail(chain, Math.max(from, end - BATCH), end, record -> {
                demote(record);
                return true;
            });
        }
    }

    /// Makes next victims of the end of a chain, in memory and on disk, but for blocks from which
    /// others have gone on and all before those: tail first.
    ///
    /// @param chain the blocks from `from` on alone are looked at
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

    /// Says of which class of requests the resident blocks of a chain are.
    ///
    /// @param reuseClass 0 to [EvictionPolicy#REUSE_CLASSES], exclusive
    /// @return blocks of which it was said, 0 where the policy makes no use of it
    public int label(BlockChain chain, int from, int reuseClass) {
        return applyToPolicies(
                chain, from, chain.length(), (policy, record, index) -> policy.label(record, reuseClass));
    }

    /// Says how much of what the resident blocks of a chain hold matters.
    ///
    /// @param halvings by index from `from` on, each 0 to [EvictionPolicy#MAX_HALVINGS]
    /// @return blocks of which it was said, 0 where the policy makes no use of it
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

    /// A request for a chain is known to come: policies that look ahead are told of all its blocks.
    ///
    /// @return whether they were; else it is for the caller to count the resident ones as used
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

    /// Whether blocks that are to be used after so many uses are worth their room until then: there is room
    /// that is unused, or one use in that time is more than the next victim promises. A policy that does
    /// not know what that promises keeps a block for as long as the next victim has been kept.
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

    /// The same of what goes by a policy; under the lock.
    private boolean isKept(EvictionPolicy policy, long uses) {
        if (uses == 0 || slabs.freeSlabs() > 0 || policy.size() == 0) {
            return true;
        }
        double lowest = policy.lowestScore();
        return Double.isNaN(lowest) ? policies.now() - policy.victimLastUse() >= uses : 1.0 / uses >= lowest;
    }

    /// The clock that orders uses.
    public long clock() {
        lock.lock();
        try {
            lookup.drainUses();
            return policies.now();
        } finally {
            lock.unlock();
        }
    }

    /// The record of a block that is in host memory or on a disk, for good, if it is of a namespace;
    /// under the lock.
    private int findSettled(BlockChain chain, int index, int namespace) {
        int record = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        boolean own = record != NONE && isSettled(record) && RecordFlags.isBlockOf(pool.flags(record), namespace);
        return own ? record : NONE;
    }

    /// The record of a block that is resident, if it is of a namespace; under the lock.
    private int find(BlockChain chain, int index, int namespace) {
        long handle = tree.find(chain.keyHi(index), chain.keyLo(index));
        boolean own = RecordHandle.isFound(handle)
                && RecordFlags.isBlockOf(pool.flags(RecordHandle.record(handle)), namespace);
        return own ? RecordHandle.record(handle) : NONE;
    }

    /// Makes a record a next victim, unless others have gone on from it.
    ///
    /// @return whether it is one
    private boolean demoteUnlessContinued(int record) {
        if (recordStates.expired().hasLiveChildren(record)) {
            return false;
        }
        recordStates.expired().add(record);
        if (recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).demote(record);
            writeBackQueue.cancelWrite(record);
        } else if (recordStates.stateOf(record) == ControlWord.ON_DISK) {
            disks.order(record).demote(record);
        }
        return true;
    }

    /// Makes a record that is in host memory worth nothing there, whatever is below it.
    private void demote(int record) {
        if (!demoteUnlessContinued(record) && recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).demote(record);
        }
    }

    /// A record is known to be used soon, whatever was said of it before: it is over no longer.
    private void expect(int record) {
        boolean resident = recordStates.stateOf(record) == ControlWord.SEALED;
        if (recordStates.expired().contains(record) && !resident) {
            disks.order(record).touch(record);
        }
        recordStates.expired().onUsed(record);
        if (resident) {
            recordStates.policyOf(record).expect(record);
        }
    }

    /// Whether a record is in host memory or on a disk, for good.
    private boolean isSettled(int record) {
        int state = recordStates.stateOf(record);
        return state == ControlWord.SEALED || state == ControlWord.ON_DISK;
    }

    /// Makes objects the next victims, in memory and on disk, the last of them first.
    ///
    /// @param namespace of the objects
    /// @return of how many that was said
    public int demote(NamespaceEntry namespace, List<BlockKey> keys) {
        return forEachKey(keys.reversed(), key -> {
            int record = tree.findAny(key.hi(), key.lo());
            return record != NONE
                    && isSettled(record)
                    && RecordFlags.isObjectOf(pool.flags(record), namespace.id())
                    && demoteUnlessContinued(record);
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
            int record = findObject(key, namespace.id());
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

    /// Tells of an object that is not in host memory: of one that a disk has the policy of its
    /// size, of one that no tier has those of all sizes that its tenant holds any of, as it has none
    /// yet.
    ///
    /// @return whether that is all that is done for it: what is on disk is brought in by the caller
    private boolean announce(NamespaceEntry namespace, BlockKey key, long uses) {
        int record = tree.findAny(key.hi(), key.lo());
        if (record != NONE) {
            boolean own = isSettled(record) && RecordFlags.isObjectOf(pool.flags(record), namespace.id());
            // It has no slot that would tell its size.
            if (own
                    && announce(
                            policies.getOrCreate(reservations.classOf(record).id(), shares.group(record)), key, uses)) {
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

    /// Does something to each of many objects, a bounded number a turn of the lock.
    ///
    /// @param done under the lock, answers whether it was
    /// @return how often it was
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

    /// The record of an object that is resident, if it is of a namespace; under the lock.
    private int findObject(BlockKey key, int namespace) {
        long handle = tree.find(key.hi(), key.lo());
        boolean own = RecordHandle.isFound(handle)
                && RecordFlags.isObjectOf(pool.flags(RecordHandle.record(handle)), namespace);
        return own ? RecordHandle.record(handle) : NONE;
    }
}
