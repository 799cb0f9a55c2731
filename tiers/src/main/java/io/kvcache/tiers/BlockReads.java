package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.RecordLookup;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.PartsBlockTable.EntryTable;
import io.kvcache.tiers.StoreContext.AccessListeners;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Pins what host memory has of a chain, and has a disk bring what it has behind that.
///
/// **Threads.** Any.
final class BlockReads {

    /// Tries to pin a match with windows and states, each shorter than the one before.
    private static final int MAX_ATTEMPTS = 8;

    private final StoreContext storeContext;
    private final HostStore store;
    private final RecordLookup lookup;
    private final DiskLoader diskLoader;
    private final AccessListeners listeners;
    /// Null when nothing is brought in ahead of its readers.
    private final @Nullable Prefetcher prefetcher;

    BlockReads(StoreContext storeContext, DiskLoader diskLoader, Prefetcher prefetcher) {
        this.prefetcher = prefetcher.isEnabled() ? prefetcher : null;
        listeners = storeContext.listeners();
        this.storeContext = storeContext;
        store = storeContext.store();
        lookup = store.lookup();
        this.diskLoader = diskLoader;
    }

    /// As [io.kvcache.core.KvCache#acquire].
    BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        return acquire(chain, from, timeoutNanos, AcquireMode.USUAL);
    }

    /// As [io.kvcache.core.LocalKvCache#acquireCopy].
    BlockTable acquireCopy(BlockChain chain, int from, long timeoutNanos) {
        return acquire(chain, from, timeoutNanos, AcquireMode.COPY);
    }

    /// As [io.kvcache.core.KvCache#acquireByLayers].
    BlockTable acquireByLayers(BlockChain chain, int from, long timeoutNanos, int layersAStep) {
        LayerSteps steps = LayerSteps.of(chain.namespace(), layersAStep);
        return acquire(chain, from, timeoutNanos, new AcquireMode(steps, null, true, true));
    }

    private BlockTable acquire(BlockChain chain, int from, long timeoutNanos, AcquireMode mode) {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
        NamespaceEntry entry = lookup.require(chain.namespace());
        BlockTable table = acquireNow(entry, chain, from, timeoutNanos, mode);
        return awaitRecoveryIfNeeded(chain, table, timeoutNanos, mode.counts);
    }

    /// As [#acquire], for some blocks of a request that was counted as a whole, and whose time began with
    /// it. What is found counts here.
    BlockTable acquireForRange(BlockChain chain, int from, Deadline deadline) {
        long timeoutNanos = Math.max(0, deadline.remainingNanos());
        AcquireMode mode = new AcquireMode(null, deadline, true, true);
        BlockTable table = acquireKnown(lookup.require(chain.namespace()), chain, from, timeoutNanos, mode);
        return awaitRecoveryIfNeeded(chain, table, timeoutNanos, true);
    }

    /// Block after the last one of the chain that is here or on disk.
    int knownEnd(BlockChain chain) {
        return lookup.matchKnown(chain, lookup.match(chain, chain.length()));
    }

    /// Reports a request that [#acquireForRange] answers to the access listeners.
    ///
    /// @param known blocks that were here or on disk
    void reportAccess(BlockChain chain, int from, int known) {
        listeners.onAccess(chain, from, known, lookup.require(chain.namespace()).blockBytes());
    }

    private BlockTable awaitRecoveryIfNeeded(BlockChain chain, BlockTable table, long timeoutNanos, boolean counts) {
        boolean mayBeTold = timeoutNanos > 0
                && table.endBlock() < chain.length()
                && table.blocksToRecompute() == 0
                && storeContext.isRecovering();
        return mayBeTold ? awaitRecovery(chain, table, timeoutNanos, counts) : table;
    }

    private BlockTable awaitRecovery(BlockChain chain, BlockTable now, long timeoutNanos, boolean counts) {
        int from = now.firstBlock();
        return RecoveringBlockTable.of(
                storeContext,
                now,
                timeoutNanos,
                new RecoveringBlockTable.SecondLookup(
                        chain.length(), () -> isKnown(chain), deadline -> acquireAgain(chain, from, deadline, counts)));
    }

    private boolean isKnown(BlockChain chain) {
        int known = lookup.matchKnown(chain, 0);
        return known == chain.length()
                && lookup.matchEntries(lookup.require(chain.namespace()), chain, known, true) == known;
    }

    /// A second look for a request that was counted at the first, and whose time began there.
    private BlockTable acquireAgain(BlockChain chain, int from, Deadline first, boolean counts) {
        AcquireMode mode = new AcquireMode(null, first, false, counts);
        long left = Math.max(0, first.remainingNanos());
        return acquireNow(lookup.require(chain.namespace()), chain, from, left, mode);
    }

    private BlockTable acquireNow(
            NamespaceEntry entry, BlockChain chain, int from, long timeoutNanos, AcquireMode mode) {
        return chain.namespace().groups().isEmpty()
                ? acquireKnown(entry, chain, from, timeoutNanos, mode)
                : acquireParts(entry, chain, from, timeoutNanos, mode);
    }

    /// Blocks with the windows and states that a match of them needs. What has gone between the look-up and the
    /// pins shortens the match.
    private BlockTable acquireParts(
            NamespaceEntry entry, BlockChain chain, int from, long timeoutNanos, AcquireMode mode) {
        Deadline deadline = mode.first == null ? Deadline.after(storeContext.clock(), timeoutNanos) : mode.first;
        boolean waits = timeoutNanos > 0 && storeContext.tierScheduler() != null;
        BlockTable table = BlockTable.empty(from);
        int end = chain.length();
        for (int attempt = 0; attempt < MAX_ATTEMPTS && end > from; attempt++) {
            BlockChain prefix = chain.prefix(end);
            int resident = lookup.match(prefix, end);
            int known = waits ? lookup.matchKnown(prefix, resident) : resident;
            end = lookup.matchEntries(entry, chain, known, waits);
            PartsAttempt parts = new PartsAttempt(chain, from, end, deadline);
            end = parts.acquire(entry);
            if (parts.table != null) {
                table = parts.table;
                break;
            }
        }
        if (mode.first == null && mode.counts) {
            entry.countRequest(chain.length() - from, table.readyBlocks());
            reportLookup(entry, chain, table, table.blocks());
        }
        return table;
    }

    /// A try to pin all that a match needs, or to have it read.
    private final class PartsAttempt {

        private final BlockChain chain;
        private final int from;
        private final int end;
        private final Deadline deadline;
        private final List<EntryTable> entries = new ArrayList<>();
        private @Nullable BlockTable table;

        PartsAttempt(BlockChain chain, int from, int end, Deadline deadline) {
            this.chain = chain;
            this.from = from;
            this.end = end;
            this.deadline = deadline;
        }

        /// @return end of a match that may do; that of this one if [#table] has it
        int acquire(NamespaceEntry entry) {
            if (end <= from) {
                return end;
            }
            BlockTable blocks = acquireSome(entry, chain.prefix(end), from, true);
            int here = blocks.endBlock();
            try {
                for (PartGroup group : chain.namespace().groups()) {
                    here = here < end ? here : acquireEntries(group);
                }
                table = here < end
                        ? null
                        : new PartsBlockTable(storeContext.clock(), chain.namespace(), blocks, end, entries);
            } finally {
                if (table == null) {
                    blocks.close();
                    entries.forEach(EntryTable::close);
                }
            }
            return here;
        }

        private int acquireEntries(PartGroup group) {
            NamespaceEntry entry = lookup.require(group.namespace());
            int first = group.firstNeeded(end);
            List<BlockTable> tables = new ArrayList<>();
            entries.add(new EntryTable(storeContext.clock(), first, tables));
            for (int number = group.entries(end) - 1; number >= first; number--) {
                BlockTable found = acquireSome(entry, chain.entry(group, number), 0, false);
                tables.addFirst(found);
                if (found.endBlock() == 0) {
                    return number * group.every();
                }
            }
            return end;
        }

        /// @param counts whether what comes from a disk counts
        private BlockTable acquireSome(NamespaceEntry entry, BlockChain some, int first, boolean counts) {
            long left = Math.max(0, deadline.remainingNanos());
            return acquireKnown(entry, some, first, left, new AcquireMode(null, deadline, false, counts));
        }
    }

    /// In which steps the blocks of a table come from disk.
    ///
    /// @param layerBytes of a layer of a block
    /// @param stepBytes of a block in a step
    private record LayerSteps(int layerBytes, int stepBytes) {

        /// Returns null when a step has all.
        static @Nullable LayerSteps of(Namespace namespace, int layersAStep) {
            if (layersAStep < 1) {
                throw new IllegalArgumentException("layersAStep is " + layersAStep + "; it takes 1 and up");
            }
            if (namespace.parts().size() != 1 || !namespace.groups().isEmpty()) {
                return null;
            }
            BlockShape shape = namespace.parts().getFirst().shape();
            long layer = shape.layerSlice(0).bytes();
            long step = Math.ceilDiv(layer * layersAStep, ChunkedCrc.CHUNK_BYTES) * ChunkedCrc.CHUNK_BYTES;
            return step < shape.bytes() ? new LayerSteps((int) layer, (int) step) : null;
        }
    }

    /// How blocks are looked for, arrive and count.
    ///
    /// @param steps null for whole blocks in order
    /// @param first the deadline of the request whose second look this is; null of a request of its own
    /// @param countsFound whether what is found at once counts here
    /// @param counts whether what comes from a disk counts, and the request itself if this is its first look
    private record AcquireMode(
            @Nullable LayerSteps steps, @Nullable Deadline first, boolean countsFound, boolean counts) {

        static final AcquireMode USUAL = new AcquireMode(null, null, true, true);

        /// For another server.
        static final AcquireMode COPY = new AcquireMode(null, null, false, false);
    }

    /// The blocks that the store knows of by now.
    ///
    /// @param timeoutNanos from now on
    private BlockTable acquireKnown(
            NamespaceEntry entry, BlockChain chain, int from, long timeoutNanos, AcquireMode mode) {
        LayerSteps steps = mode.steps;
        Deadline first = mode.first;
        boolean counts = first == null && mode.counts;
        OpenHandle openHandle = storeContext.openHandles().acquire(chain);
        long deepest = RecordHandle.MISS;
        BlockTable table = null;
        int leftOnDisk = 0;
        int known;
        try {
            deepest = lookup.pinDeepest(chain);
            int here = RecordHandle.isFound(deepest) ? lookup.records().depth(RecordHandle.record(deepest)) + 1 : 0;
            int found = Math.max(0, here - from);
            if (mode.countsFound) {
                entry.countRequest(counts ? chain.length() - from : 0, found);
            }
            LoadBatch loadBatch = null;
            if (timeoutNanos > 0 && here < chain.length() && storeContext.tierScheduler() != null) {
                DiskLoader.StartedLoads started =
                        diskLoader.startLoads(chain, here, from, timeoutNanos, steps == null ? 0 : steps.stepBytes);
                loadBatch = started.loadBatch();
                leftOnDisk = started.blocksLeftOnDisk();
            }
            known = loadBatch == null ? found : Math.max(0, here + loadBatch.count() - from);
            if (loadBatch != null) {
                LoadingBlockTable.BlockRange blockRange = new LoadingBlockTable.BlockRange(
                        entry, deepest, here, loadBatch, from, steps == null ? 0 : steps.layerBytes, mode.counts);
                Deadline deadline = first == null ? Deadline.after(storeContext.clock(), timeoutNanos) : first;
                table = new LoadingBlockTable(storeContext, openHandle, blockRange, deadline);
            } else if (found > 0) {
                table = new HostBlockTable(
                        storeContext, openHandle, RecordHandle.record(deepest), from, entry.blockBytes());
            }
        } finally {
            if (table == null) {
                release(openHandle, deepest);
            }
        }
        BlockTable taken = table == null ? BlockTable.empty(from) : table;
        if (counts) {
            reportLookup(entry, chain, taken, known);
        }
        return leftOnDisk == 0 ? taken : new RecomputeAdvisedTable(taken, leftOnDisk);
    }

    private void release(OpenHandle openHandle, long deepest) {
        if (RecordHandle.isFound(deepest)) {
            lookup.unpin(RecordHandle.record(deepest));
        }
        storeContext.openHandles().release(openHandle);
    }

    /// Reports the request to the access listeners; if that fails, the caller never gets the table.
    private void reportLookup(NamespaceEntry entry, BlockChain chain, BlockTable table, int known) {
        int from = table.firstBlock();
        try {
            listeners.onAccess(chain, from, known, entry.blockBytes());
            if (prefetcher != null && chain.length() > 0 && from + known == chain.length()) {
                var _ = prefetcher.onAcquire(chain);
            }
        } catch (RuntimeException | Error failed) {
            table.close();
            throw failed;
        }
    }

    /// A table followed by blocks on disk that are cheaper to compute than to load.
    private static final class RecomputeAdvisedTable extends ForwardingBlockTable {

        private final int blocksToRecompute;

        RecomputeAdvisedTable(BlockTable table, int blocksToRecompute) {
            super(table);
            this.blocksToRecompute = blocksToRecompute;
        }

        @Override
        public int blocksToRecompute() {
            return blocksToRecompute;
        }
    }
}
