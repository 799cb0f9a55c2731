package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;

/// Whether a value may take its key; asked by who holds the key's lock.
final class Conditions {

    private final Ground ground;

    Conditions(Ground ground) {
        this.ground = ground;
    }

    boolean hold(Key key, BlockKey hash, PendingPut.Condition condition) {
        if (condition == PendingPut.Condition.ALWAYS) {
            return true;
        }
        KeyEntry entry = ground.index().find(hash);
        boolean present = (entry == null || !entry.expired(ground.wall().millis())) && ground.stores(key);
        return present == (condition == PendingPut.Condition.IF_PRESENT);
    }
}
