package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.StoredBlock;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The blocks of one namespace of a store by their keys, for callers that count blocks or forget single ones.
///
/// **Threads.** Any.
public final class BlockCatalog {

    private final HostStore store;
    private final NamespaceEntry namespace;

    BlockCatalog(HostStore store, NamespaceEntry namespace) {
        this.store = store;
        this.namespace = namespace;
    }

    /// Those that are known while it looks, in any tier and any order. Looks at every record of the store, some
    /// thousands a turn of its lock.
    public List<StoredBlock> list() {
        return store.blocks(namespace);
    }

    /// Returns whether a block is here, in any tier. Pins and touches nothing.
    public boolean contains(BlockKey key) {
        return store.lookup().containsBlock(namespace, key);
    }

    /// Returns whether a block is here, in any tier, or being written, but is not the child of a block.
    ///
    /// @param parent null when the block should be the first of a chain
    public boolean hasOtherParent(BlockKey key, @Nullable BlockKey parent) {
        return store.hasOtherParent(key, parent);
    }

    /// How many leading blocks of a list of keys are here, in any tier, each below the one before it. Takes the
    /// time of a look-up for each, and is for keys of which it is not known that they are those of one chain.
    ///
    /// @param maxKeys keys that are looked at
    public int countLeading(BlockChain chain, int maxKeys) {
        return store.lookup().matchLinked(chain, maxKeys);
    }

    /// How many leading blocks of a table are ready and have the keys of this list. A table goes by the deepest key
    /// that is here; of keys that are not those of one chain, others may lie above it.
    ///
    /// @param table of this chain, from block 0 on
    public int countLeading(BlockChain chain, BlockTable table) {
        RecordPool records = store.lookup().records();
        int ready = table.readyEnd();
        for (int index = 0; index < ready; index++) {
            int record = RecordHandle.record(table.handle(index));
            if (records.keyHi(record) != chain.keyHi(index) || records.keyLo(record) != chain.keyLo(index)) {
                return index;
            }
        }
        return ready;
    }

    /// Forgets a block and all below it, in every tier, also when it is on a disk that has not told of it yet.
    ///
    /// @return blocks forgotten that were known
    public int drop(BlockKey key) {
        return store.drop(namespace, key);
    }

    /// As [#drop], because the owner's quota is full: it counts, and events tell of it, as that.
    public int dropForQuota(BlockKey key) {
        return store.dropForQuota(namespace, key);
    }
}
