package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.time.InstantSource;

/// Whether a value may take its key; asked by who holds the key's lock.
final class Conditions {

    private final KvCache cache;
    private final Namespace namespace;
    private final KeyIndex index;
    private final InstantSource wall;

    Conditions(KvCache cache, Namespace namespace, KeyIndex index, InstantSource wall) {
        this.cache = cache;
        this.namespace = namespace;
        this.index = index;
        this.wall = wall;
    }

    boolean hold(Key key, BlockKey hash, PendingPut.Condition condition) {
        if (condition == PendingPut.Condition.ALWAYS) {
            return true;
        }
        KeyEntry entry = index.find(hash);
        boolean present =
                (entry == null || !entry.expired(wall.millis())) && cache.containsObject(namespace, key.bytes());
        return present == (condition == PendingPut.Condition.IF_PRESENT);
    }
}
