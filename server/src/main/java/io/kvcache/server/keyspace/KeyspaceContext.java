package io.kvcache.server.keyspace;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Clock;
import io.kvcache.server.miss.MissCauses;
import java.time.InstantSource;

/// What the parts of a keyspace have in common: the store, the clocks, and what is known of the keys.
///
/// @param clock of the store
/// @param wallClock that values expire by
record KeyspaceContext(
        LocalKvCache cache,
        Namespace namespace,
        Clock clock,
        InstantSource wallClock,
        KeyIndex index,
        KeyLocks locks,
        ExistsPins existsPins,
        MissCauses missCauses,
        KeyspaceCounters counters) {

    BlockKey digestOf(Key key) {
        return key.digest(namespace);
    }

    /// Whether the store has a key, in memory or on disk.
    boolean isStored(Key key) {
        return cache.containsObject(namespace, key.bytes());
    }
}
