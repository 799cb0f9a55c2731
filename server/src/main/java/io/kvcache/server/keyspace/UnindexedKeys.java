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
final class UnindexedKeys {

    private final ObjectCatalog catalog;
    private final KeyIndex index;
    private final KeyLocks locks;
    private final QuotaLru quotaLru;

    UnindexedKeys(ObjectCatalog catalog, KeyIndex index, KeyLocks locks, QuotaLru quotaLru) {
        this.catalog = catalog;
        this.index = index;
        this.locks = locks;
        this.quotaLru = quotaLru;
    }

    /// Looks for all that the store has and the index has not heard of.
    void scan() {
        if (quotaLru.isLimited()) {
            catalog.list().forEach(this::indexFound);
        }
    }

    private void indexFound(ObjectCatalog.Entry found) {
        ReentrantLock lock = locks.of(found.digest());
        lock.lock();
        try {
            if (index.find(found.digest()) == null && catalog.contains(found.digest())) {
                quotaLru.addUnindexed(found.digest(), found.bytes());
            }
        } finally {
            lock.unlock();
        }
    }

    /// An event said that this one may be gone.
    void removeIfGone(BlockKey digest) {
        if (quotaLru.isUnindexed(digest) && !catalog.contains(digest)) {
            quotaLru.removeUnindexed(digest);
        }
    }

    /// Any of them may be gone.
    void removeAllGone() {
        quotaLru.unindexed().forEach(this::removeIfGone);
    }

    /// Forgets one to make room; answers whether there was one.
    ///
    /// A writer who is replacing just this one loses what he writes: nobody can tell which key it has.
    boolean evictOne() {
        BlockKey digest = quotaLru.anyUnindexed();
        if (digest == null) {
            return false;
        }
        ReentrantLock lock = locks.of(digest);
        lock.lock();
        try {
            if (quotaLru.removeUnindexed(digest)) {
                catalog.dropForQuota(digest);
            }
        } finally {
            lock.unlock();
        }
        return true;
    }
}
