package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
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
        endBlock = storeContext.store().records().depth(deepest) + 1;
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
                storeContext.store().slotSegment(storeContext.store().records().hostPage(record), blockBytes);
        return StoreContext.bind(scope, slot).asReadOnly();
    }

    @Override
    public int checksum(int index) {
        return storeContext.store().records().checksum(record(index));
    }

    @Override
    public long handle(int index) {
        return storeContext.store().records().handle(record(index));
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
            RecordPool records = storeContext.store().records();
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
            storeContext.store().lookup().unpin(deepest);
            storeContext.openHandles().release(openHandle);
        }
    }
}
