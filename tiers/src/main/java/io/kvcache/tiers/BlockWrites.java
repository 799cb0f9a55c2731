package io.kvcache.tiers;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.tiers.SlotWriter.RoomWaiter;
import io.kvcache.tiers.StoreContext.AccessListeners;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.IntFunction;

/// Writers of blocks.
///
/// **Threads.** Any.
final class BlockWrites {

    private final StoreContext storeContext;
    private final HostStore store;
    private final RoomWaiter roomWaiter;
    private final DiskLoader diskLoader;
    private final AccessListeners listeners;

    BlockWrites(StoreContext storeContext, RoomWaiter roomWaiter, DiskLoader diskLoader) {
        this.storeContext = storeContext;
        store = storeContext.store();
        this.roomWaiter = roomWaiter;
        this.diskLoader = diskLoader;
        listeners = storeContext.listeners();
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
        PartGroup group = chain.namespace().groupOf(part);
        return group == null
                ? putBlock(entry, chain, index, timeoutNanos)
                : putEntry(chain, index, group, timeoutNanos);
    }

    /// An entry of a window or state. A namespace that has nothing else has blocks of no meaning for it to belong
    /// to, which are put here.
    private BlockWriter putEntry(BlockChain chain, int index, PartGroup group, long timeoutNanos) {
        BlockChain single = chain.entry(group, group.entryBehind(index));
        if (!chain.namespace().hasFullParts()) {
            putSpine(chain.prefix(index + 1), timeoutNanos);
        }
        return putBlock(store.require(group.namespace()), single, 0, timeoutNanos);
    }

    private void putSpine(BlockChain chain, long timeoutNanos) {
        long start = roomWaiter.nanos();
        NamespaceEntry entry = store.require(chain.namespace());
        for (int index = store.lookup().match(chain, chain.length()); index < chain.length(); index++) {
            long left = roomWaiter.remainingNanos(start, timeoutNanos);
            try (BlockWriter writer = putBlock(entry, chain, index, left)) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    writer.segment().fill((byte) 0);
                    writer.seal();
                } else if (!writer.outcome().allowsNextBlock()) {
                    return;
                }
            }
        }
    }

    private BlockWriter putBlock(NamespaceEntry entry, BlockChain chain, int index, long timeoutNanos) {
        OpenHandle openHandle = storeContext.openHandles().acquire(chain);
        try {
            PutReservation putReservation = reserve(entry, chain, index, timeoutNanos);
            if (putReservation.outcome() == PutOutcome.RESERVED && listeners.hasListeners()) {
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
        RoomWaiter.Wait wait = roomWaiter.begin(timeoutNanos);
        PutReservation putReservation;
        do {
            putReservation = store.reserve(entry, chain, index, wait.isSparing());
        } while (wait.repeats(putReservation));
        if (storeContext.tierScheduler() != null && putReservation.outcome() == PutOutcome.RESERVED && index > 0) {
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
        return new BulkPut(blocks, i -> put(chain, from + i, 0, roomWaiter.remainingNanos(start, timeoutNanos))).put();
    }

    /// A run of blocks that is stored by copying them, one after another.
    ///
    /// Between two blocks of a run, another put may evict the one that was stored last, and the next has no parent
    /// then. The run begins again from its front, once: it finds what is left and stores the rest again.
    ///
    /// Not safe for several threads.
    static final class BulkPut {

        private final List<MemorySegment> blocks;
        private final IntFunction<BlockWriter> writers;
        private boolean parentEvicted;

        /// @param writers by the block's number in the run
        BulkPut(List<MemorySegment> blocks, IntFunction<BlockWriter> writers) {
            this.blocks = blocks;
            this.writers = writers;
        }

        /// Stops at the first that is refused.
        PutSummary put() {
            PutSummary summary = putFromFront();
            return parentEvicted ? putFromFront() : summary;
        }

        private PutSummary putFromFront() {
            int stored = 0;
            int present = 0;
            PutOutcome last = PutOutcome.PRESENT;
            for (int i = 0; i < blocks.size(); i++) {
                try (BlockWriter writer = writers.apply(i)) {
                    last = writer.outcome();
                    if (last == PutOutcome.RESERVED) {
                        writer.copyFrom(blocks.get(i));
                        if (writer.seal() == SealOutcome.DROPPED) {
                            return new PutSummary(stored, present, PutOutcome.NO_PARENT);
                        }
                        stored++;
                    } else if (last.allowsNextBlock()) {
                        present++;
                    } else {
                        parentEvicted = i > 0 && last == PutOutcome.NO_PARENT;
                        return new PutSummary(stored, present, last);
                    }
                }
            }
            return new PutSummary(stored, present, last);
        }
    }

    /// Writes one block into its slot.
    static final class HostBlockWriter implements BlockWriter {

        private final SlotWriter slotWriter;
        private final int blockBytes;
        private boolean checksummed;

        HostBlockWriter(SlotWriter slotWriter, int blockBytes) {
            this.slotWriter = slotWriter;
            this.blockBytes = blockBytes;
        }

        @Override
        public PutOutcome outcome() {
            return slotWriter.outcome();
        }

        @Override
        public MemorySegment segment() {
            slotWriter.requireOpen();
            return slotWriter.bind(slot());
        }

        @Override
        public void copyFrom(MemorySegment source) {
            slotWriter.requireOpen();
            if (source.byteSize() != blockBytes) {
                throw new IllegalArgumentException(
                        "the source has " + source.byteSize() + " bytes; a block of this namespace has " + blockBytes);
            }
            slotWriter.copyIn(source, List.of(slot()));
            checksummed = true;
        }

        @Override
        public SealOutcome seal() {
            slotWriter.requireOpen();
            if (!checksummed) {
                slotWriter.addToChecksum(slot());
            }
            return slotWriter.seal();
        }

        @Override
        public SealOutcome seal(int checksum) {
            return slotWriter.seal(checksum);
        }

        @Override
        public void close() {
            slotWriter.close();
        }

        private MemorySegment slot() {
            HostStore store = slotWriter.store();
            return store.slotSegment(store.records().hostPage(slotWriter.record()), blockBytes);
        }
    }
}
