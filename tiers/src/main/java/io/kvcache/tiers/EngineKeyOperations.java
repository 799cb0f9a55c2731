package io.kvcache.tiers;

import io.kvcache.core.AccessListener;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.EngineBlock;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.BlockWrites.HostBlockWriter;
import io.kvcache.tiers.OpenHandles.OpenHandle;
import io.kvcache.tiers.TieredKvCache.AccessListeners;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Single blocks by their own key and that of the block before them, for those who do not have the
/// chain at hand.
///
/// A block that is in host memory is found by its key alone: all above it are there too. For one that
/// is on disk the chain is read off the records, and it is brought in as any other.
final class EngineKeyOperations {

    private final HostBlockTable.StoreContext storeContext;
    private final HostStore store;
    private final RoomWaiter roomWaiter;
    private final DiskLoader diskLoader;
    private final Hints hints;
    private final AccessListeners listeners;

    EngineKeyOperations(
            HostBlockTable.StoreContext storeContext,
            RoomWaiter roomWaiter,
            DiskLoader diskLoader,
            Hints hints,
            AccessListeners listeners) {
        this.listeners = listeners;
        this.storeContext = storeContext;
        this.roomWaiter = roomWaiter;
        this.diskLoader = diskLoader;
        this.hints = hints;
        store = storeContext.store();
    }

    BlockWriter put(Namespace namespace, EngineKey key, @Nullable EngineKey parent, long timeoutNanos) {
        NamespaceEntry entry = store.require(namespace);
        entry.requireParts();
        EngineBlock block = new EngineBlock(
                key.toBlockKey(namespace), parent == null ? null : parent.toBlockKey(namespace), key.low64());
        OpenHandle openHandle = storeContext.openHandles().acquire(namespace);
        try {
            PutReservation putReservation = roomWaiter.reserve(
                    timeoutNanos, sparing -> hints.reserve(() -> store.reserve(entry, block, sparing)));
            loadParents(namespace, block, putReservation);
            if (putReservation.outcome() == PutOutcome.RESERVED) {
                listeners.onPut(namespace, block.key(), block.parent(), entry.blockBytes(), false);
            }
            return new HostBlockWriter(new SlotWriter(storeContext, openHandle, putReservation), entry.blockBytes());
        } catch (RuntimeException failed) {
            storeContext.openHandles().release(openHandle);
            throw failed;
        }
    }

    private void loadParents(Namespace namespace, EngineBlock block, PutReservation putReservation) {
        BlockKey parent = block.parent();
        if (parent == null || putReservation.outcome() != PutOutcome.RESERVED) {
            return;
        }
        List<BlockKey> above = diskLoader.isParentOnDisk(putReservation.record()) ? store.ancestors(parent) : List.of();
        if (!above.isEmpty()) {
            BlockChain chain = BlockChain.ofKeys(namespace, above);
            diskLoader.loadParents(chain, chain.length(), putReservation.record());
        }
    }

    /// The table of a block in host memory, or null.
    @Nullable
    BlockTable acquireResident(Namespace namespace, EngineKey key) {
        NamespaceEntry entry = store.require(namespace);
        entry.requireParts();
        BlockKey wanted = key.toBlockKey(namespace);
        OpenHandle openHandle = storeContext.openHandles().acquire(namespace);
        long handle = store.lookup().pinBlock(entry, wanted);
        if (!RecordHandle.isFound(handle)) {
            storeContext.openHandles().release(openHandle);
            return null;
        }
        entry.countRequest(1, 1);
        listeners.onAccess(AccessListener.LookupKind.GET, namespace, wanted, entry.blockBytes());
        int record = RecordHandle.record(handle);
        return new HostBlockTable(
                storeContext, openHandle, record, store.records().depth(record), entry.blockBytes());
    }

    /// Whether a block is here or on disk.
    boolean contains(Namespace namespace, EngineKey key) {
        return store.lookup().containsBlock(store.require(namespace), key.toBlockKey(namespace));
    }

    /// The table of a block that is not known.
    BlockTable emptyTable(Namespace namespace, EngineKey key) {
        store.require(namespace).countRequest(1, 0);
        listeners.onAccess(AccessListener.LookupKind.GET, namespace, key.toBlockKey(namespace), -1);
        return BlockTable.empty(0);
    }

    /// The chain that ends with a block that is known, or null.
    @Nullable
    BlockChain findChain(Namespace namespace, EngineKey key) {
        List<BlockKey> keys = store.ancestors(key.toBlockKey(namespace));
        return keys.isEmpty() ? null : BlockChain.ofKeys(namespace, keys);
    }
}
