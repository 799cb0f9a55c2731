package io.kvcache.tiers;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;

/// The blocks of one namespace of a store by their keys, for callers that look for single ones or forget them.
///
/// **Threads.** Any.
public final class BlockCatalog {

    private final HostStore store;
    private final NamespaceEntry namespace;

    BlockCatalog(HostStore store, NamespaceEntry namespace) {
        this.store = store;
        this.namespace = namespace;
    }

    /// Returns whether a block is here, in any tier. Pins and touches nothing.
    public boolean contains(BlockKey key) {
        return store.lookup().containsBlock(namespace, key);
    }

    /// Forgets a block and all below it, in every tier, also when it is on a disk that has not told of it yet.
    ///
    /// @return blocks forgotten that were known
    public int drop(BlockKey key) {
        return store.drop(namespace, key);
    }
}
