package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;

/// Whether a value may take its key; asked by who holds the key's lock.
final class PutConditionChecker {

    private final KeyspaceContext keyspaceContext;

    PutConditionChecker(KeyspaceContext keyspaceContext) {
        this.keyspaceContext = keyspaceContext;
    }

    boolean isMet(Key key, BlockKey hash, PendingPut.Condition condition) {
        if (condition == PendingPut.Condition.ALWAYS) {
            return true;
        }
        KeyEntry entry = keyspaceContext.index().find(hash);
        boolean present =
                (entry == null || !entry.isExpired(keyspaceContext.wallClock().millis()))
                        && keyspaceContext.isStored(key);
        return present == (condition == PendingPut.Condition.IF_PRESENT);
    }
}
