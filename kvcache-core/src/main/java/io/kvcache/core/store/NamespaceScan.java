package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.stats.ObjectResidency;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.EntryGroup;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.WriteBackQueue.PendingTombstones;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.IntPredicate;

/// Drops and lists what callers have stored, a run of record numbers at a time, so that the lock is never held for the
/// whole pool. What comes and goes between two runs is listed or not.
///
/// **Threads.** Any; each run holds the store's lock.
final class NamespaceScan {

    /// Records looked at in one turn of the lock: some microseconds when there is nothing to drop.
    private static final int BATCH = 4096;

    private final RecordPool pool;
    private final BlockTree tree;
    private final NamespaceRegistry namespaceRegistry;
    private final DiskUsageTable disks;
    private final PendingTombstones tombstones;
    private final RecordStates recordStates;
    private final RecordLookup lookup;
    private final ReentrantLock lock;

    NamespaceScan(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        namespaceRegistry = store.namespaceRegistry;
        disks = store.disks;
        recordStates = store.recordStates;
        lookup = store.lookup;
        lock = store.lock;
        tombstones = store.writeBackQueue.tombstones();
    }

    /// Drops a record and all below it.
    ///
    /// @param cause [EventKind#DROPPED] or [EventKind#QUOTA]
    /// @return sealed records among them
    int drop(long hi, long lo, EventKind cause) {
        lock.lock();
        try {
            return dropUnder(hi, lo, cause);
        } finally {
            lock.unlock();
        }
    }

    /// Drops a block of a chain and all below it; of the chain also what a disk may have and the store does
    /// not know.
    ///
    /// @return sealed records among them
    int drop(BlockChain chain, int from) {
        lock.lock();
        try {
            NamespaceEntry entry = namespaceRegistry.require(chain.namespace());
            int dropped = 0;
            for (int index = chain.length() - 1; index >= from; index--) {
                long hi = chain.keyHi(index);
                long lo = chain.keyLo(index);
                for (EntryGroup group : entry.groups()) {
                    if (group.isBehind(index)) {
                        dropKnownOrNot(
                                group.keyHi(hi), group.keyLo(lo), group.entry().id(), EventKind.DROPPED);
                    }
                }
                dropped += dropKnownOrNot(hi, lo, entry.id(), EventKind.DROPPED);
            }
            return dropped;
        } finally {
            lock.unlock();
        }
    }

    /// Drops a block and all below it; also one that a disk may have and the store does not know.
    ///
    /// @param cause [EventKind#DROPPED] or [EventKind#QUOTA]
    /// @return sealed records among them
    int drop(int namespaceId, BlockKey key, EventKind cause) {
        lock.lock();
        try {
            return dropKnownOrNot(key.hi(), key.lo(), namespaceId, cause);
        } finally {
            lock.unlock();
        }
    }

    private int dropKnownOrNot(long hi, long lo, int namespaceId, EventKind cause) {
        int known = tree.findAny(hi, lo);
        if (known != NONE && !RecordFlags.isBlockOf(pool.flags(known), namespaceId)) {
            return 0;
        }
        if (known == NONE) {
            tombstones.addOnAllDisks(new Tombstone(hi, lo, namespaceId, false), disks.disks());
        }
        return dropUnder(hi, lo, cause);
    }

    private int dropUnder(long hi, long lo, EventKind cause) {
        lookup.drainUses();
        recordStates.exclusions().addDropped(hi, lo);
        int dropped = 0;
        for (int record = tree.findAny(hi, lo); record != NONE; record = tree.findAny(hi, lo)) {
            dropped += recordStates.drop(record, cause);
        }
        return dropped;
    }

    /// Drops everything of a namespace.
    ///
    /// @return sealed records among it
    long dropAll(NamespaceEntry entry) {
        entry.groups().forEach(group -> dropAll(group.entry()));
        long[] dropped = {0};
        lock.lock();
        try {
            recordStates.exclusions().addNamespace(entry.id());
            tombstones.addOnAllDisks(Tombstone.of(entry.id()), disks.disks());
        } finally {
            lock.unlock();
        }
        inBatches((from, to) -> {
            recordStates.exclusions().addNamespace(entry.id());
            lookup.drainUses();
            for (int record = from; record < to; record++) {
                int state = recordStates.stateOf(record);
                boolean known = state != ControlWord.FREE && state != ControlWord.DELETED;
                if (known && RecordFlags.namespaceId(pool.flags(record)) == entry.id() && pool.parent(record) == NONE) {
                    dropped[0] += recordStates.markDeleted(record, EventKind.DROPPED);
                }
            }
        });
        return dropped[0];
    }

    /// The objects of a namespace that are here or on disk.
    List<ObjectCatalog.Entry> objects(NamespaceEntry entry) {
        List<ObjectCatalog.Entry> found = new ArrayList<>();
        inBatches((from, to) -> {
            for (int record = from; record < to; record++) {
                if (isListed(record) && RecordFlags.isObjectOf(pool.flags(record), entry.id())) {
                    found.add(new ObjectCatalog.Entry(key(record), pool.bytes(record)));
                }
            }
        });
        return found;
    }

    /// Visits the objects of some namespaces that are here or on disk, between two turns of the lock.
    void visitObjects(IntPredicate namespaces, Consumer<ObjectResidency> visitor) {
        List<ObjectResidency> found = new ArrayList<>();
        inBatches(
                (from, to) -> {
                    lookup.drainUses();
                    for (int record = from; record < to; record++) {
                        int flags = pool.flags(record);
                        if (isListed(record)
                                && RecordFlags.isObject(flags)
                                && namespaces.test(RecordFlags.namespaceId(flags))) {
                            found.add(storedObject(record));
                        }
                    }
                },
                () -> {
                    found.forEach(visitor);
                    found.clear();
                });
    }

    private ObjectResidency storedObject(int record) {
        boolean inMemory = recordStates.stateOf(record) == ControlWord.SEALED;
        EvictionPolicy policy = inMemory ? recordStates.policyOf(record) : null;
        return new ObjectResidency(
                RecordFlags.namespaceId(pool.flags(record)),
                key(record),
                pool.bytes(record),
                inMemory,
                pool.diskAddress(record) != NONE,
                policy == null ? -1 : policy.uses(record),
                policy == null ? -1 : policy.lastUse(record));
    }

    private boolean isListed(int record) {
        return ControlWord.isKnown(recordStates.stateOf(record));
    }

    private BlockKey key(int record) {
        return new BlockKey(pool.keyHi(record), pool.keyLo(record));
    }

    private interface Batch {
        void run(int from, int to);
    }

    private void inBatches(Batch batch) {
        inBatches(batch, () -> {});
    }

    /// @param between turns of the lock
    private void inBatches(Batch batch, Runnable between) {
        for (int from = 0; from < pool.capacity(); from += BATCH) {
            lock.lock();
            try {
                if (from >= pool.highWaterMark()) {
                    return;
                }
                batch.run(from, Math.min(pool.highWaterMark(), from + BATCH));
            } finally {
                lock.unlock();
            }
            between.run();
        }
    }
}
