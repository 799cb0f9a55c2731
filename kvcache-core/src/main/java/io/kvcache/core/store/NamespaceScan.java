package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore.StoredBlock;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/// Drops or lists what a namespace has, a run of record numbers at a time, so that the lock is never held for the
/// whole pool.
final class NamespaceScan {

    /// Records looked at in one turn of the lock: some microseconds when there is nothing to drop.
    static final int BATCH = 4096;

    private NamespaceScan() {}

    static long drop(RecordPool pool, RecordStates recordStates, int namespaceId, int from) {
        long dropped = 0;
        int to = Math.min(pool.highWaterMark(), from + BATCH);
        for (int record = from; record < to; record++) {
            int state = ControlWord.state(pool.control(record));
            boolean known = state != ControlWord.FREE && state != ControlWord.DELETED;
            if (known && RecordFlags.namespaceId(pool.flags(record)) == namespaceId && pool.parent(record) == NONE) {
                dropped += recordStates.markDeleted(record, EventKind.DROPPED);
            }
        }
        return dropped;
    }

    static void objects(RecordPool pool, int namespaceId, int from, List<ObjectCatalog.Entry> found) {
        int to = Math.min(pool.highWaterMark(), from + BATCH);
        for (int record = from; record < to; record++) {
            int identity = pool.flags(record);
            if (isKnown(ControlWord.state(pool.control(record)))
                    && RecordFlags.isObject(identity)
                    && RecordFlags.namespaceId(identity) == namespaceId) {
                BlockKey digest = new BlockKey(pool.keyHi(record), pool.keyLo(record));
                found.add(new ObjectCatalog.Entry(digest, pool.bytes(record)));
            }
        }
    }

    static void blocks(RecordPool pool, int namespaceId, int from, List<StoredBlock> found) {
        int to = Math.min(pool.highWaterMark(), from + BATCH);
        for (int record = from; record < to; record++) {
            int identity = pool.flags(record);
            if (isKnown(ControlWord.state(pool.control(record)))
                    && !RecordFlags.isObject(identity)
                    && RecordFlags.namespaceId(identity) == namespaceId) {
                int parent = pool.parent(record);
                found.add(new StoredBlock(
                        new BlockKey(pool.keyHi(record), pool.keyLo(record)),
                        parent == NONE ? null : new BlockKey(pool.keyHi(parent), pool.keyLo(parent))));
            }
        }
    }

    private static boolean isKnown(int state) {
        return switch (state) {
            case ControlWord.SEALED, ControlWord.ON_DISK, ControlWord.LOADING, ControlWord.LOADED -> true;
            default -> false;
        };
    }

    /// Takes away what its owner does not want any more, here and on disk.
    ///
    /// **Threads.** Any; each turn holds the store's lock.
    static final class Deletion {

        private final RecordPool pool;
        private final BlockTree tree;
        private final NamespaceRegistry namespaceRegistry;
        private final RecordStates recordStates;
        private final TierPort tierPort;
        private final AccessDrain accessDrain;
        private final ReentrantLock lock;

        Deletion(
                StoreComponents parts,
                RecordStates recordStates,
                TierPort tierPort,
                AccessDrain accessDrain,
                ReentrantLock lock) {
            pool = parts.pool();
            tree = parts.tree();
            namespaceRegistry = parts.namespaceRegistry();
            this.recordStates = recordStates;
            this.tierPort = tierPort;
            this.accessDrain = accessDrain;
            this.lock = lock;
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
                int namespaceId = namespaceRegistry.require(chain.namespace()).id();
                int dropped = 0;
                for (int index = chain.length() - 1; index >= from; index--) {
                    dropped += dropKnownOrNot(chain.keyHi(index), chain.keyLo(index), namespaceId, EventKind.DROPPED);
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
                tierPort.addTombstone(new Tombstone(hi, lo, namespaceId, false));
            }
            return dropUnder(hi, lo, cause);
        }

        private int dropUnder(long hi, long lo, EventKind cause) {
            accessDrain.drain();
            tierPort.excludeFromRecovery(hi, lo);
            int dropped = 0;
            for (int record = tree.findAny(hi, lo); record != NONE; record = tree.findAny(hi, lo)) {
                dropped += recordStates.drop(record, cause);
            }
            return dropped;
        }

        /// Drops everything of a namespace, a bounded number of records a turn of the lock.
        long dropAll(NamespaceEntry entry) {
            long dropped = 0;
            for (int from = 0; from < pool.capacity(); from += NamespaceScan.BATCH) {
                lock.lock();
                try {
                    tierPort.excludeFromRecovery(entry.id());
                    if (from == 0) {
                        tierPort.addTombstone(Tombstone.of(entry.id()));
                    }
                    if (from >= pool.highWaterMark()) {
                        return dropped;
                    }
                    accessDrain.drain();
                    dropped += NamespaceScan.drop(pool, recordStates, entry.id(), from);
                } finally {
                    lock.unlock();
                }
            }
            return dropped;
        }
    }

    /// Lists what a namespace has, here or on disk, a bounded number of records a turn of the lock: what comes and
    /// goes meanwhile may be listed or not.
    ///
    /// **Threads.** Any.
    static final class NamespaceListing {

        private final RecordPool pool;
        private final ReentrantLock lock;

        NamespaceListing(RecordPool pool, ReentrantLock lock) {
            this.pool = pool;
            this.lock = lock;
        }

        List<ObjectCatalog.Entry> objects(NamespaceEntry entry) {
            List<ObjectCatalog.Entry> found = new ArrayList<>();
            inBatches(from -> NamespaceScan.objects(pool, entry.id(), from, found));
            return found;
        }

        List<StoredBlock> blocks(NamespaceEntry entry) {
            List<StoredBlock> found = new ArrayList<>();
            inBatches(from -> NamespaceScan.blocks(pool, entry.id(), from, found));
            return found;
        }

        private void inBatches(IntConsumer turn) {
            for (int from = 0; from < pool.capacity(); from += NamespaceScan.BATCH) {
                lock.lock();
                try {
                    if (from >= pool.highWaterMark()) {
                        return;
                    }
                    turn.accept(from);
                } finally {
                    lock.unlock();
                }
            }
        }
    }

    /// What is resident and on no disk: a restart would not find it.
    ///
    /// **Threads.** Any; takes the store's lock for a bounded number of records at a time.
    static final class UnflushedScan {

        private final RecordPool pool;
        private final RecordStates recordStates;
        private final WriteBackQueue writeBackQueue;
        private final ReentrantLock lock;

        UnflushedScan(StoreComponents parts, RecordStates recordStates, ReentrantLock lock) {
            pool = parts.pool();
            writeBackQueue = parts.writeBackQueue();
            this.recordStates = recordStates;
            this.lock = lock;
        }

        /// Has a run of records written, as far as they were used so often. They are owed to a flush from then
        /// on.
        ///
        /// @return whether there are more
        boolean enqueue(int from, int batch, int leastUses) {
            lock.lock();
            try {
                boolean more = forEachUnflushed(from, batch, record -> {
                    if (RecordFlags.uses(pool.flags(record)) >= leastUses) {
                        writeBackQueue.enqueueMissing(record);
                    }
                });
                writeBackQueue.flushMark();
                return more;
            } finally {
                lock.unlock();
            }
        }

        /// How many bytes it is.
        long countBytes(int batch) {
            long[] sum = new long[1];
            for (int from = 0; forEachUnflushed(from, batch, record -> sum[0] += pool.bytes(record)); from += batch) {}
            return sum[0];
        }

        private boolean forEachUnflushed(int from, int batch, IntConsumer use) {
            lock.lock();
            try {
                int to = Math.min(pool.highWaterMark(), from + batch);
                for (int record = from; record < to; record++) {
                    if (recordStates.stateOf(record) == ControlWord.SEALED && pool.diskAddress(record) == NONE) {
                        use.accept(record);
                    }
                }
                return to < pool.highWaterMark();
            } finally {
                lock.unlock();
            }
        }
    }

    /// Finds the blocks above a block, a bounded number of them a turn of the lock.
    ///
    /// Between two turns the record that the last one ended at may be gone, so each begins by looking its
    /// key up again.
    static final class AncestorScan {

        private static final int BATCH = 1024;

        private final RecordPool pool;
        private final BlockTree tree;
        private final ReentrantLock lock;

        AncestorScan(RecordPool pool, BlockTree tree, ReentrantLock lock) {
            this.pool = pool;
            this.tree = tree;
            this.lock = lock;
        }

        /// The keys of a block and of all before it, from the first on; empty when one of them is not known.
        List<BlockKey> ancestorsOf(BlockKey key) {
            List<BlockKey> upwards = new ArrayList<>();
            BlockKey next = key;
            while (next != null) {
                lock.lock();
                try {
                    next = climb(next, upwards);
                } finally {
                    lock.unlock();
                }
            }
            Collections.reverse(upwards);
            return upwards;
        }

        /// Adds a block and some above it; answers the next one, or null at the end. What is not known ends
        /// it with nothing.
        private @Nullable BlockKey climb(BlockKey from, List<BlockKey> upwards) {
            int record = tree.findAny(from.hi(), from.lo());
            for (int left = BATCH; left > 0; left--) {
                if (record == NONE || !ControlWord.isKnown(ControlWord.state(pool.control(record)))) {
                    upwards.clear();
                    return null;
                }
                upwards.add(new BlockKey(pool.keyHi(record), pool.keyLo(record)));
                record = pool.parent(record);
                if (record == NONE) {
                    return null;
                }
            }
            return new BlockKey(pool.keyHi(record), pool.keyLo(record));
        }
    }
}
