package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// What the policies think of blocks that lie elsewhere than in host memory too, and uses that happened there.
///
/// **Threads.** Owned by the store's lock.
final class TierRank {

    private final RecordPool pool;
    private final BlockTree tree;
    private final NamespaceRegistry namespaceRegistry;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;
    private final ExpiredBlocks expiredBlocks;
    private final NoveltyClassifier noveltyClassifier;

    TierRank(StoreComponents parts, RecordStates recordStates) {
        pool = parts.pool();
        tree = parts.tree();
        namespaceRegistry = parts.namespaceRegistry();
        policies = parts.slotClassPolicies();
        shares = parts.memoryShares();
        disks = parts.diskUsageTable();
        writeBackQueue = parts.writeBackQueue();
        expiredBlocks = parts.expiredBlocks();
        noveltyClassifier = parts.noveltyClassifier();
        this.recordStates = recordStates;
    }

    /// How much a block is wanted by its policy's measure, which is [Double#NaN] for policies that have none; 0 when
    /// the block is not in the store.
    double score(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        return record == NONE ? 0 : policyOf(record).score(record);
    }

    /// The same of a record that lies on a disk, to put several in order: 0 for all under a policy
    /// without a measure, and for what is [ExpiredBlocks]. What is being read is in use, which nothing comes
    /// before.
    double rank(int record) {
        int state = recordStates.stateOf(record);
        if (state != ControlWord.SEALED && state != ControlWord.ON_DISK) {
            return Double.POSITIVE_INFINITY;
        }
        if (expiredBlocks.contains(record)) {
            return 0;
        }
        double worth =
                RecordFlags.isObject(pool.flags(record)) ? 0 : policyOf(record).score(record);
        double weight = state == ControlWord.ON_DISK ? policies.state().weight(record) : 1; // else the policy's matter
        return Double.isNaN(worth) ? 0 : weight * worth;
    }

    /// A block was used; those above it are told of by themselves.
    void onUsed(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        if (record == NONE) {
            return;
        }
        expiredBlocks.onUsed(record);
        noveltyClassifier.onUsed(record);
        if (recordStates.stateOf(record) == ControlWord.SEALED) {
            recordStates.policyOf(record).touch(record);
        } else {
            disks.order(record).touch(record);
            policyOf(record).onUsedElsewhere(record);
        }
        writeBackQueue.onUsed(record);
    }

    private int find(long keyHi, long keyLo) {
        int record = tree.findAny(keyHi, keyLo);
        int state = record == NONE ? ControlWord.FREE : recordStates.stateOf(record);
        boolean here = state == ControlWord.SEALED || state == ControlWord.ON_DISK;
        return here && !RecordFlags.isObject(pool.flags(record)) ? record : NONE;
    }

    private EvictionPolicy policyOf(int record) {
        if (recordStates.stateOf(record) == ControlWord.SEALED) {
            return recordStates.policyOf(record);
        }
        NamespaceEntry namespace = namespaceRegistry.byId(RecordFlags.namespaceId(pool.flags(record)));
        return policies.getOrCreate(namespace.slotClass().id(), shares.group(record));
    }
}
