package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.MissCauses;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Takes keys out of store, index and promises together.
///
/// **Threads.** Any.
final class KeyRemover {

    private final KeyspaceContext keyspaceContext;
    private final InFlightWrites inFlightWrites;

    KeyRemover(KeyspaceContext keyspaceContext, InFlightWrites inFlightWrites) {
        this.keyspaceContext = keyspaceContext;
        this.inFlightWrites = inFlightWrites;
    }

    /// Forgets a key; answers whether the store had it.
    boolean remove(Key key, MissCauses.Cause cause) {
        BlockKey hash = keyspaceContext.digestOf(key);
        ReentrantLock lock = keyspaceContext.locks().of(hash);
        lock.lock();
        try {
            KeyEntry entry = keyspaceContext.index().find(hash);
            if (entry != null) {
                keyspaceContext.index().remove(entry);
            }
            boolean dropped = dropFromStore(key, cause);
            if (dropped || entry != null) {
                keyspaceContext.missCauses().record(hash, cause);
            }
            return dropped;
        } finally {
            lock.unlock();
            keyspaceContext.existsPins().revoke(key);
        }
    }

    /// Forgets a value that counts as gone.
    void removeStale(KeyEntry entry) {
        removeEntry(entry, MissCauses.Cause.EVICTED, _ -> true);
    }

    /// Forgets a key to make room, with its other half, unless something newer has its place by now, or will have soon,
    /// or a client was promised that it stays.
    ///
    /// @param by the key that the room is for, whose own older value may go; null when it is for none
    /// @return whether it is gone
    boolean evict(KeyEntry entry, @Nullable Key by) {
        boolean own = by != null && entry.key().equals(by);
        if (!own
                && (inFlightWrites.isWriting(entry.key())
                        || keyspaceContext.existsPins().isPinned(entry.key()))) {
            return false;
        }
        ReentrantLock lock = keyspaceContext.locks().of(entry.hash());
        lock.lock();
        try {
            if (keyspaceContext.index().find(entry.hash()) != entry) {
                return true;
            }
            recordRemoval(entry, MissCauses.Cause.QUOTA);
            dropFromStore(entry.key(), MissCauses.Cause.QUOTA);
        } finally {
            lock.unlock();
        }
        keyspaceContext.existsPins().revoke(entry.key());
        removeOtherHalf(entry, MissCauses.Cause.QUOTA);
        return true;
    }

    /// Forgets a key whose time is up.
    void expire(KeyEntry entry, long now) {
        removeEntry(entry, MissCauses.Cause.EXPIRED, it -> it.isExpired(now));
    }

    /// Forgets a key, unless something newer has its place by now, or will have soon: dropping the key now would drop
    /// that with it.
    private void removeEntry(KeyEntry entry, MissCauses.Cause cause, Predicate<KeyEntry> still) {
        if (inFlightWrites.isWriting(entry.key())) {
            return;
        }
        ReentrantLock lock = keyspaceContext.locks().of(entry.hash());
        lock.lock();
        try {
            if (keyspaceContext.index().find(entry.hash()) != entry || !still.test(entry)) {
                return;
            }
            recordRemoval(entry, cause);
            dropFromStore(entry.key(), cause);
        } finally {
            lock.unlock();
        }
        keyspaceContext.existsPins().revoke(entry.key());
    }

    /// Has the store forget a key; answers whether it had it.
    private boolean dropFromStore(Key key, MissCauses.Cause cause) {
        return cause == MissCauses.Cause.QUOTA
                ? keyspaceContext
                        .cache()
                        .objects(keyspaceContext.namespace())
                        .dropForQuota(keyspaceContext.digestOf(key))
                : keyspaceContext.cache().dropObject(keyspaceContext.namespace(), key.bytes());
    }

    private void recordRemoval(KeyEntry entry, MissCauses.Cause cause) {
        keyspaceContext.index().remove(entry);
        keyspaceContext.missCauses().record(entry.hash(), cause);
    }

    private void removeOtherHalf(KeyEntry entry, MissCauses.Cause cause) {
        byte[] other = LmcacheKeyPair.otherKey(entry.key().bytes());
        if (other != null && entry.isPaired()) {
            remove(new Key(other), cause);
        }
    }

    /// An event said that this key may be gone.
    ///
    /// @param cause why, if it is
    /// @return whether it is
    boolean removeIfGone(KeyEntry entry, MissCauses.Cause cause) {
        ReentrantLock lock = keyspaceContext.locks().of(entry.hash());
        lock.lock();
        try {
            if (keyspaceContext.isStored(entry.key())) {
                return false;
            }
            recordRemoval(entry, cause);
        } finally {
            lock.unlock();
        }
        removeOtherHalf(entry, cause);
        return true;
    }
}
