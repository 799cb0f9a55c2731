package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Brings keys into the index that the store had before the index was made, and finds what belongs together.
///
/// **Threads.** Any.
final class Adoption {

    private final KvCache cache;
    private final Namespace namespace;
    private final KeyIndex index;
    private final KeyLocks locks;

    Adoption(KvCache cache, Namespace namespace, KeyIndex index, KeyLocks locks) {
        this.cache = cache;
        this.namespace = namespace;
        this.index = index;
        this.locks = locks;
    }

    /// Makes an entry for a key that the store has and the index has not heard of.
    @Nullable
    KeyEntry adopt(Key key) {
        ObjectView view = cache.getObject(namespace, key.bytes());
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
        BlockKey hash = key.digest(namespace);
        ReentrantLock lock = locks.of(hash);
        lock.lock();
        try {
            KeyEntry known = index.find(hash);
            if (known == null && cache.containsObject(namespace, key.bytes())) {
                known = new KeyEntry(key, hash, value.bytes(), value.expiresAtMillis());
                index.put(known);
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
        KeyEntry partner = other == null ? null : index.find(BlockKey.ofObject(namespace, other));
        if (partner != null) {
            entry.pair();
            partner.pair();
        }
    }
}
