package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Brings keys into the index that the store had before the index was made, and finds what belongs together.
///
/// **Threads.** Any.
final class IndexBackfill {

    private final KeyspaceContext keyspaceContext;

    IndexBackfill(KeyspaceContext keyspaceContext) {
        this.keyspaceContext = keyspaceContext;
    }

    /// Makes an entry for a key that the store has and the index has not heard of.
    @Nullable
    KeyEntry backfill(Key key) {
        ObjectView view = keyspaceContext.cache().getObject(keyspaceContext.namespace(), key.bytes());
        PinnedValue value = view == null ? null : PinnedValue.of(view);
        if (value == null) {
            return null;
        }
        try (value) {
            return backfill(key, value);
        }
    }

    /// The same with the value at hand, which stays the caller's.
    @Nullable
    KeyEntry backfill(Key key, PinnedValue value) {
        BlockKey hash = keyspaceContext.digestOf(key);
        ReentrantLock lock = keyspaceContext.locks().of(hash);
        lock.lock();
        try {
            KeyEntry known = keyspaceContext.index().find(hash);
            if (known == null && keyspaceContext.isStored(key)) {
                known = new KeyEntry(key, hash, value.bytes(), value.expiresAtMillis());
                keyspaceContext.index().put(known);
                markPaired(known);
            }
            return known;
        } finally {
            lock.unlock();
        }
    }

    /// Notes that an entry and its other half are both here.
    void markPaired(KeyEntry entry) {
        byte[] other = LmcacheKeyPair.otherKey(entry.key().bytes());
        KeyEntry partner = other == null
                ? null
                : keyspaceContext.index().find(BlockKey.ofObject(keyspaceContext.namespace(), other));
        if (partner != null) {
            entry.markPaired();
            partner.markPaired();
        }
    }
}
