package io.kvcache.tiers;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceEntry;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Writers of blocks that are named by their chain.
///
/// **Threads.** Any.
final class BlockWrites {

    private final HostBlockTable.StoreContext storeContext;
    private final HostStore store;
    private final RoomWaiter roomWaiter;
    private final DiskLoader diskLoader;
    private final Hints hints;
    private final AccessListeners listeners;

    BlockWrites(
            HostBlockTable.StoreContext storeContext,
            RoomWaiter roomWaiter,
            DiskLoader diskLoader,
            Hints hints,
            AccessListeners listeners) {
        this.storeContext = storeContext;
        store = storeContext.store();
        this.roomWaiter = roomWaiter;
        this.diskLoader = diskLoader;
        this.hints = hints;
        this.listeners = listeners;
    }

    /// As [io.kvcache.core.KvCache#put].
    BlockWriter put(BlockChain chain, int index, int part, long timeoutNanos) {
        if (index < 0 || index >= chain.length()) {
            throw new IndexOutOfBoundsException(
                    "block " + index + " of a chain of " + chain.length() + "; full blocks only");
        }
        NamespaceEntry entry = store.require(chain.namespace());
        int parts = entry.requireParts();
        if (part < 0 || part >= parts) {
            throw new IllegalArgumentException(
                    "part is " + part + "; " + entry.namespace() + " takes 0 to " + (parts - 1));
        }
        OpenHandle openHandle = storeContext.openHandles().acquire(chain);
        try {
            PutReservation putReservation = reserve(entry, chain, index, timeoutNanos);
            if (putReservation.outcome() == PutOutcome.RESERVED && part == 0 && listeners.hasListeners()) {
                BlockKey after = index == 0 ? null : new BlockKey(chain.keyHi(index - 1), chain.keyLo(index - 1));
                BlockKey key = new BlockKey(chain.keyHi(index), chain.keyLo(index));
                listeners.onPut(chain.namespace(), key, after, entry.blockBytes(), false);
            }
            return new HostBlockWriter(new SlotWriter(storeContext, openHandle, putReservation), entry.blockBytes());
        } catch (RuntimeException failed) {
            storeContext.openHandles().release(openHandle);
            throw failed;
        }
    }

    private PutReservation reserve(NamespaceEntry entry, BlockChain chain, int index, long timeoutNanos) {
        PutReservation putReservation = roomWaiter.reserve(
                timeoutNanos, sparing -> hints.reserve(() -> store.reserve(entry, chain, index, sparing)));
        if (putReservation.outcome() == PutOutcome.RESERVED && index > 0) {
            diskLoader.loadParents(chain, index, putReservation.record());
        }
        return putReservation;
    }

    /// As [io.kvcache.core.KvCache#putAll].
    PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        if (from < 0 || from > chain.length() - blocks.size()) {
            throw new IndexOutOfBoundsException(
                    blocks.size() + " blocks from " + from + "; the chain has " + chain.length());
        }
        long start = roomWaiter.nanos();
        return BulkPut.put(blocks, i -> put(chain, from + i, 0, roomWaiter.remainingNanos(start, timeoutNanos)));
    }
}
