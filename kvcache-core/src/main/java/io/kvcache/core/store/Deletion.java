package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;

/// Takes away what its owner does not want any more, here and on disk.
///
/// **Threads.** Any; each turn holds the store's lock.
final class Deletion {

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

    /// Drops a block of a chain and all below it; of the chain also what a disk may have and the store does not know.
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
