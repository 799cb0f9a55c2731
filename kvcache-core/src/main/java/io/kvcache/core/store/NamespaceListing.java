package io.kvcache.core.store;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;

/// Lists what a namespace has, here or on disk, a bounded number of records a turn of the lock: what comes and goes
/// meanwhile may be listed or not.
///
/// **Threads.** Any.
final class NamespaceListing {

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
