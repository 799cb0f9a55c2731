package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Brings keys into the index that the store had before the index was made, and finds what belongs together.
///
/// **Threads.** Any.
final class Adoption {

    private final Ground ground;

    Adoption(Ground ground) {
        this.ground = ground;
    }

    /// Makes an entry for a key that the store has and the index has not heard of.
    @Nullable
    KeyEntry adopt(Key key) {
        ObjectView view = ground.cache().getObject(ground.namespace(), key.bytes());
        Value value = view == null ? null : Value.of(view);
        if (value == null) {
            return null;
        }
        try (value) {
            return adopt(key, value);
        }
    }

    /// The same with the value at hand, which stays the caller's.
    @Nullable
    KeyEntry adopt(Key key, Value value) {
        BlockKey hash = ground.hash(key);
        ReentrantLock lock = ground.locks().of(hash);
        lock.lock();
        try {
            KeyEntry known = ground.index().find(hash);
            if (known == null && ground.stores(key)) {
                known = new KeyEntry(key, hash, value.bytes(), value.expiresAtMillis());
                ground.index().put(known);
                pair(known);
            }
            return known;
        } finally {
            lock.unlock();
        }
    }

    /// Notes that an entry and its other half are both here.
    void pair(KeyEntry entry) {
        byte[] other = Halves.other(entry.key().bytes());
        KeyEntry partner = other == null ? null : ground.index().find(BlockKey.ofObject(ground.namespace(), other));
        if (partner != null) {
            entry.pair();
            partner.pair();
        }
    }
}
