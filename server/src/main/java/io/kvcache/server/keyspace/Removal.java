package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.Departed;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Takes keys out of store, index and promises together.
///
/// **Threads.** Any.
final class Removal {

    private final Ground ground;
    private final Writings writings;

    Removal(Ground ground, Writings writings) {
        this.ground = ground;
        this.writings = writings;
    }

    /// Forgets a key; answers whether the store had it.
    boolean drop(Key key, Departed.Cause cause) {
        BlockKey hash = ground.hash(key);
        ReentrantLock lock = ground.locks().of(hash);
        lock.lock();
        try {
            KeyEntry entry = ground.index().find(hash);
            if (entry != null) {
                ground.index().remove(entry);
            }
            boolean dropped = dropped(key, cause);
            if (dropped || entry != null) {
                ground.departed().note(hash, cause);
            }
            return dropped;
        } finally {
            lock.unlock();
            ground.promises().withdraw(key);
        }
    }

    /// Forgets a value that counts as gone.
    void lapse(KeyEntry entry) {
        forget(entry, Departed.Cause.EVICTED, _ -> true);
    }

    /// Forgets a key to make room, with its other half, unless something newer has its place by now, or will have soon,
    /// or a client was promised that it stays.
    ///
    /// @param by the key that the room is for, whose own older value may go; null when it is for none
    /// @return whether it is gone
    boolean evict(KeyEntry entry, @Nullable Key by) {
        boolean own = by != null && entry.key().equals(by);
        if (!own && (writings.has(entry.key()) || ground.promises().holds(entry.key()))) {
            return false;
        }
        ReentrantLock lock = ground.locks().of(entry.hash());
        lock.lock();
        try {
            if (ground.index().find(entry.hash()) != entry) {
                return true;
            }
            leave(entry, Departed.Cause.QUOTA);
            dropped(entry.key(), Departed.Cause.QUOTA);
        } finally {
            lock.unlock();
        }
        ground.promises().withdraw(entry.key());
        dropOther(entry, Departed.Cause.QUOTA);
        return true;
    }

    /// Forgets a key whose time is up.
    void expire(KeyEntry entry, long now) {
        forget(entry, Departed.Cause.EXPIRED, it -> it.expired(now));
    }

    /// Forgets a key, unless something newer has its place by now, or will have soon: dropping the key now would drop
    /// that with it.
    private void forget(KeyEntry entry, Departed.Cause cause, Predicate<KeyEntry> still) {
        if (writings.has(entry.key())) {
            return;
        }
        ReentrantLock lock = ground.locks().of(entry.hash());
        lock.lock();
        try {
            if (ground.index().find(entry.hash()) != entry || !still.test(entry)) {
                return;
            }
            leave(entry, cause);
            dropped(entry.key(), cause);
        } finally {
            lock.unlock();
        }
        ground.promises().withdraw(entry.key());
    }

    /// Has the store forget a key; answers whether it had it.
    private boolean dropped(Key key, Departed.Cause cause) {
        return cause == Departed.Cause.QUOTA
                ? ground.cache().objects(ground.namespace()).dropForQuota(ground.hash(key))
                : ground.cache().dropObject(ground.namespace(), key.bytes());
    }

    private void leave(KeyEntry entry, Departed.Cause cause) {
        ground.index().remove(entry);
        ground.departed().note(entry.hash(), cause);
    }

    private void dropOther(KeyEntry entry, Departed.Cause cause) {
        byte[] other = Halves.other(entry.key().bytes());
        if (other != null && entry.paired()) {
            drop(new Key(other), cause);
        }
    }

    /// An event said that this key may be gone.
    ///
    /// @param cause why, if it is
    /// @return whether it is
    boolean check(KeyEntry entry, Departed.Cause cause) {
        ReentrantLock lock = ground.locks().of(entry.hash());
        lock.lock();
        try {
            if (ground.stores(entry.key())) {
                return false;
            }
            leave(entry, cause);
        } finally {
            lock.unlock();
        }
        dropOther(entry, cause);
        return true;
    }
}
