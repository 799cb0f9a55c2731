package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.SlotAllocator.SlotClassPolicies;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.List;

/// How records come to disk and leave it.
///
/// A record on disk has all blocks above it on disk: one is placed only when the block above is, and a record that
/// loses its place takes the places of all below it along.
///
/// **Threads.** Owned by the store's lock.
final class DiskResidency {

    private final RecordPool pool;
    private final BlockTree tree;
    private final NamespaceRegistry namespaceRegistry;
    private final SlotClassPolicies policies;
    private final MemoryShares shares;
    private final DiskUsageTable disks;
    private final StoreEvents storeEvents;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;

    DiskResidency(
            BlockTree tree,
            NamespaceRegistry namespaceRegistry,
            SlotClassPolicies policies,
            MemoryShares shares,
            DiskUsageTable disks,
            StoreEvents storeEvents,
            WriteBackQueue writeBackQueue,
            RecordStates recordStates) {
        pool = tree.pool();
        this.tree = tree;
        this.namespaceRegistry = namespaceRegistry;
        this.policies = policies;
        this.shares = shares;
        this.disks = disks;
        this.storeEvents = storeEvents;
        this.writeBackQueue = writeBackQueue;
        this.recordStates = recordStates;
    }

    /// A record's copy was written or found.
    ///
    /// @return false when it may not count, because the block above is not on disk
    boolean addCopy(int record, long address, int checksum) {
        if (!disks.allowsChildren(pool.parent(record))) {
            return false;
        }
        disks.setAddress(record, address, checksum);
        pool.setFlags(record, RecordFlags.USED_ON_DISK, false);
        recordStates.onCopyChanged(record);
        storeEvents.onStored(record, TierKind.DISK);
        connectDescendants(record);
        return true;
    }

    /// Makes what was found below a record findable, now that the record is on disk.
    void connectDescendants(int record) {
        if (!pool.hasChildren(record)) {
            return;
        }
        ArrayDeque<Integer> ready = new ArrayDeque<>();
        ready.add(record);
        while (!ready.isEmpty()) {
            tree.forEachChild(ready.poll(), child -> {
                if (recordStates.stateOf(child) == ControlWord.ORPHAN) {
                    connect(child);
                    ready.add(child);
                }
            });
        }
    }

    /// Makes a record findable that was found on disk with all above it.
    void connect(int record) {
        pool.transition(record, ControlWord.ON_DISK, 0);
        policies.state().clearLabel(record);
        writeBackQueue.onRecovered(record);
        disks.order(record).addRecovered(record);
        storeEvents.onKnown(record);
        storeEvents.onStored(record, TierKind.DISK);
    }

    /// Forgets the copies on disk of a record and of all below it.
    void forgetSubtree(int root) {
        int above = pool.parent(root);
        tree.forEachDescendant(root, record -> {
            if (pool.diskAddress(record) != NONE) {
                forgetOne(record);
            } else {
                recordStates.reapOne(record);
            }
        });
        recordStates.reap(above);
    }

    private void forgetOne(int record) {
        int state = recordStates.stateOf(record);
        if (state == ControlWord.ON_DISK || state == ControlWord.ORPHAN) {
            recordStates.markSubtreeDeleted(record, EventKind.EVICTED);
        } else {
            storeEvents.onRemoved(record, EventKind.EVICTED, TierKind.DISK);
            recordStates.tombstoneObject(record);
            disks.clearAddress(record);
            recordStates.onCopyChanged(record);
        }
    }

    /// Forgets what a disk has of a run of record numbers.
    void forgetDisk(int disk, int from, int to) {
        for (int record = from; record < to; record++) {
            boolean there = recordStates.stateOf(record) != ControlWord.FREE
                    && pool.diskAddress(record) != NONE
                    && DiskAddress.diskOf(pool.diskAddress(record)) == disk;
            if (there) {
                forgetSubtree(record);
            }
        }
    }

    /// Evicts what was used least recently of the group that has most for its weight, while more is alive
    /// on a disk than may be. On a disk that is ranked those are spared that the host tier's policy
    /// wants more than others.
    void trim(int disk) {
        DiskUsage account = disks.usage(disk);
        while (account.isOverLimit()) {
            int victim = account.evictUnlessExempt(record -> recordStates.claimOnDisk(record), this::rank);
            if (victim == NONE) {
                return;
            }
            recordStates.onEvictedFromDisk(victim);
        }
    }

    /// Evicts one record that is on disk alone, whichever disk that is, to free the record itself.
    boolean freeRecord(int keep) {
        for (int disk = 0; disk < disks.disks(); disk++) {
            int victim = disks.usage(disk).evict(record -> record != keep && recordStates.claimOnDisk(record));
            if (victim != NONE) {
                recordStates.onEvictedFromDisk(victim);
                return true;
            }
        }
        return false;
    }

    /// The record whose copy lies at a place, or -1.
    int recordAt(long keyHi, long keyLo, long address) {
        for (int at = pool.bucketHead(keyLo); at != NONE; at = pool.bucketNext(at)) {
            if (pool.keyLo(at) == keyLo && pool.keyHi(at) == keyHi && pool.diskAddress(at) == address) {
                return at;
            }
        }
        return NONE;
    }

    /// What is alive of a part of a span that is about to be reclaimed.
    void collectLive(int disk, ReclaimCandidates offer, int from, int to, List<LiveCopy> live) {
        boolean ranked = disks.usage(disk).isRanked();
        for (int i = from; i < to; i++) {
            int record = recordAt(offer.keyHi(i), offer.keyLo(i), DiskAddress.of(disk, offer.address(i)));
            if (record != NONE) {
                boolean within = disks.usage(disk).isWithinShare(shares.group(record));
                double rank = ranked ? rank(record) : 0;
                live.add(new LiveCopy(i, record, within, isInUse(record), rank, keepingScore(record)));
            }
        }
    }

    /// Forgets a copy that was not kept, if it still counts, with all below it.
    void discard(int disk, ReclaimCandidates offer, LiveCopy refused) {
        if (pool.diskAddress(refused.record) == DiskAddress.of(disk, offer.address(refused.index))) {
            forgetSubtree(refused.record);
        }
    }

    /// A copy that counts.
    ///
    /// @param index in the offer
    /// @param isWithinShare whether its group has no more on this disk than its share: that is kept
    ///     first
    /// @param isInUse whether it is worth another write
    /// @param rank what the host tier's policy gives it on a disk that is ranked, 0 on others
    /// @param score the same among those of one rank: first what has blocks below it, heads before
    ///     tails, then what was used last
    record LiveCopy(int index, int record, boolean isWithinShare, boolean isInUse, double rank, long score) {}

    /// What is being read is in use.
    private boolean isInUse(int record) {
        int state = recordStates.stateOf(record);
        boolean loading = state == ControlWord.LOADING || state == ControlWord.LOADED;
        return writeBackQueue.isWorthKeeping(record) || loading;
    }

    private long keepingScore(int record) {
        if (pool.hasChildren(record)) {
            return Long.MAX_VALUE - pool.depth(record);
        }
        boolean alone = recordStates.stateOf(record) == ControlWord.ON_DISK;
        return alone ? disks.order(record).lastUse(record) : Long.MAX_VALUE / 2;
    }

    /// How much a block is wanted by its policy's measure, which is [Double#NaN] for policies that have
    /// none; 0 when the block is not in the store.
    double score(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        return record == NONE ? 0 : policyOf(record).score(record);
    }

    /// The same of a record that lies on a disk, to put several in order: 0 for all under a policy
    /// without a measure, and for what is [ExpiredBlocks]. What is being read is in use, which nothing
    /// comes before.
    double rank(int record) {
        int state = recordStates.stateOf(record);
        if (state != ControlWord.SEALED && state != ControlWord.ON_DISK) {
            return Double.POSITIVE_INFINITY;
        }
        if (recordStates.expired().contains(record)) {
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
        recordStates.onUsed(record);
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
