package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.locks.ReentrantLock;

/// Values that the store has from before a restart, and whose keys nobody knows before they are asked for: they count
/// for the quota, and they are the first to go when it is full, as they were not used since.
///
/// Without a quota nothing is kept of them.
///
/// **Threads.** Any.
final class Strangers {

    private final ObjectCatalog catalog;
    private final KeyIndex index;
    private final KeyLocks locks;
    private final Holdings holdings;

    Strangers(ObjectCatalog catalog, KeyIndex index, KeyLocks locks, Holdings holdings) {
        this.catalog = catalog;
        this.index = index;
        this.locks = locks;
        this.holdings = holdings;
    }

    /// Looks for all that the store has and the index has not heard of.
    void find() {
        if (holdings.limited()) {
            catalog.list().forEach(this::meet);
        }
    }

    private void meet(ObjectCatalog.Entry found) {
        ReentrantLock lock = locks.of(found.digest());
        lock.lock();
        try {
            if (index.find(found.digest()) == null && catalog.contains(found.digest())) {
                holdings.enterStranger(found.digest(), found.bytes());
            }
        } finally {
            lock.unlock();
        }
    }

    /// An event said that this one may be gone.
    void check(BlockKey digest) {
        if (holdings.isStranger(digest) && !catalog.contains(digest)) {
            holdings.leaveStranger(digest);
        }
    }

    /// Any of them may be gone.
    void checkAll() {
        holdings.strangers().forEach(this::check);
    }

    /// Forgets one to make room; answers whether there was one.
    ///
    /// A writer who is replacing just this one loses what he writes: nobody can tell which key it has.
    boolean evictOne() {
        BlockKey digest = holdings.anyStranger();
        if (digest == null) {
            return false;
        }
        ReentrantLock lock = locks.of(digest);
        lock.lock();
        try {
            if (holdings.leaveStranger(digest)) {
                catalog.dropForQuota(digest);
            }
        } finally {
            lock.unlock();
        }
        return true;
    }
}
