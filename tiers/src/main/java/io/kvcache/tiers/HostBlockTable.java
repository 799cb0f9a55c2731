package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.time.Clock;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.OpenHandles.OpenHandle;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Blocks that are resident in host memory. One pin, on the deepest; the others cannot go while it stays.
///
/// The records of the other blocks are looked up when the first segment is asked for, by walking the parents once.
/// A table that is only counted costs nothing a block.
final class HostBlockTable implements BlockTable {

    /// Parts of the store that a table needs.
    ///
    /// @param tierScheduler null of a store without disks
    /// @param prefill what computing takes, or null when unknown
    /// @param prefetch whether blocks that are likely to be read next are brought from disk
    record StoreContext(
            HostStore store,
            OpenHandles openHandles,
            boolean checked,
            Clock clock,
            @Nullable TierScheduler tierScheduler,
            @Nullable PrefillCost prefill,
            boolean prefetch) {

        /// The time during which a caller may use the segments that it is given. In a checked store they throw
        /// once the scope is closed, instead of showing the next owner's bytes. That costs ten to twenty
        /// microseconds a scope, so an unchecked store has none and hands the slot's memory out as it is.
        @Nullable
        Arena openScope() {
            return checked ? Arena.ofShared() : null;
        }

        /// The same memory, for as long as a scope.
        @SuppressWarnings("restricted") // the span and its length stay what the slab pool has bounded
        static MemorySegment bind(@Nullable Arena scope, MemorySegment slot) {
            return scope == null ? slot : slot.reinterpret(scope, null);
        }

        /// @throws IllegalStateException when another thread is inside an access at this moment
        static void close(@Nullable Arena scope) {
            if (scope != null) {
                scope.close();
            }
        }

        /// Returns whether a disk is still recovering.
        boolean isRecovering() {
            return tierScheduler != null && tierScheduler.isRecovering();
        }

        /// A record's slot was filled by a writer, or will not be.
        void notifyChanged(int record) {
            if (tierScheduler != null) {
                tierScheduler.loadListeners().notifyChanged(record);
            }
        }
    }

    private final StoreContext storeContext;
    private final int blockBytes;
    private final int deepest;
    private final int firstBlock;
    private final int endBlock;
    private final OpenHandle openHandle;
    /// Null in a store that is not checked.
    private final @Nullable Arena scope;
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile int @Nullable [] recordsInOrder;

    /// Takes over a pin and a hold.
    HostBlockTable(StoreContext storeContext, OpenHandle openHandle, int deepest, int firstBlock, int blockBytes) {
        this.storeContext = storeContext;
        this.openHandle = openHandle;
        this.deepest = deepest;
        this.firstBlock = firstBlock;
        this.blockBytes = blockBytes;
        endBlock = storeContext.store.records().depth(deepest) + 1;
        scope = storeContext.openScope();
    }

    @Override
    public int firstBlock() {
        return firstBlock;
    }

    @Override
    public int endBlock() {
        return endBlock;
    }

    @Override
    public int readyEnd() {
        return endBlock;
    }

    @Override
    public int await(int end, Duration timeout) {
        Timeouts.requireNotNegative(timeout);
        return endBlock;
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return CompletableFuture.supplyAsync(() -> endBlock, executor);
    }

    @Override
    public MemorySegment segment(int index) {
        int record = record(index);
        MemorySegment slot =
                storeContext.store.slotSegment(storeContext.store.records().hostPage(record), blockBytes);
        return StoreContext.bind(scope, slot).asReadOnly();
    }

    @Override
    public int checksum(int index) {
        return storeContext.store.records().checksum(record(index));
    }

    @Override
    public long handle(int index) {
        return storeContext.store.records().handle(record(index));
    }

    private int record(int index) {
        if (index < firstBlock || index >= endBlock) {
            throw new IndexOutOfBoundsException(
                    "block " + index + " of a table of blocks " + firstBlock + " to " + endBlock + " (exclusive)");
        }
        if (closed.get()) {
            throw new IllegalStateException("the table is closed");
        }
        return resolveRecords()[index - firstBlock];
    }

    private int[] resolveRecords() {
        int[] known = recordsInOrder;
        if (known == null) {
            known = new int[endBlock - firstBlock];
            RecordPool records = storeContext.store.records();
            int record = deepest;
            for (int i = known.length - 1; i >= 0; i--) {
                known[i] = record;
                record = records.parent(record);
            }
            recordsInOrder = known;
        }
        return known;
    }

    @Override
    public boolean isValid() {
        return true;
    }

    @Override
    public int blocksToRecompute() {
        return 0;
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            StoreContext.close(scope);
        } finally {
            storeContext.store.lookup().unpin(deepest);
            storeContext.openHandles.release(openHandle);
        }
    }
}
