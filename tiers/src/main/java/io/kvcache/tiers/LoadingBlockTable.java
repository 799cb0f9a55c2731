package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.memory.ReadyWaiters;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.OpenHandles.OpenHandle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Blocks that are resident in host memory, and after them such as arrive from disk.
///
/// One pin on the deepest resident block, and one on each of those that come, from the start; so
/// whatever other threads load or evict, a block that has arrived stays. What has arrived is read off the
/// records: the table is told when to look, and looks.
final class LoadingBlockTable implements BlockTable {

    private static final long MIN_TIMER_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final HostBlockTable.StoreContext storeContext;
    private final OpenHandle openHandle;
    private final BlockRange blockRange;
    private final LoadBatch loadBatch;
    private final RecordPool records;
    private final @Nullable Arena scope;
    private final Runnable listener = this::update;
    private final ReadyWaiters waiters = new ReadyWaiters();
    private final DelayedTask timeout = new DelayedTask(this::onTimeout);
    private final Deadline deadline;
    private int @Nullable [] recordsInOrder;
    private int arrived;
    private boolean ended;
    private boolean closed;

    /// No thread in [#await] is woken for fewer blocks: a block may arrive every few microseconds.
    private int minAwaited = Integer.MAX_VALUE;

    /// Blocks of the table.
    ///
    /// @param deepest handle of the deepest resident one, or a miss
    /// @param residentBlocks blocks of the chain that are resident
    /// @param loadBatch those after them that come
    /// @param firstBlock of the table
    record BlockRange(NamespaceEntry entry, long deepest, int residentBlocks, LoadBatch loadBatch, int firstBlock) {}

    /// Takes over all pins, and a hold.
    ///
    /// @param deadline until when blocks may go on arriving
    LoadingBlockTable(
            HostBlockTable.StoreContext storeContext, OpenHandle openHandle, BlockRange blockRange, Deadline deadline) {
        this.storeContext = storeContext;
        this.openHandle = openHandle;
        this.blockRange = blockRange;
        this.deadline = deadline;
        loadBatch = blockRange.loadBatch;
        records = storeContext.store().records();
        scope = storeContext.openScope();
        for (int i = 0; i < loadBatch.count(); i++) {
            if (state(i) != ControlWord.SEALED && storeContext.tierScheduler() != null) {
                storeContext.tierScheduler().loadListeners().add(loadBatch.record(i), listener);
            }
        }
        update();
    }

    private int state(int position) {
        return ControlWord.state(records.control(loadBatch.record(position)));
    }

    /// Counts the blocks that have arrived, and wakes the threads that wait for them.
    private void update() {
        Runnable tell;
        boolean over;
        synchronized (this) {
            advance();
            over = ended;
            int ready = readyUntil();
            tell = waiters.takeReady(ready, ended);
            if (ended || ready >= minAwaited) {
                minAwaited = Integer.MAX_VALUE;
                notifyAll();
            }
        }
        if (over) {
            timeout.cancel();
        }
        tell.run();
    }

    private void onTimeout() {
        update();
        scheduleTimeout(); // again, where the store's clock goes slower than the machine's
    }

    private void scheduleTimeout() {
        boolean goesOn;
        synchronized (this) {
            goesOn = !ended;
        }
        if (goesOn) {
            timeout.schedule(Math.max(MIN_TIMER_NANOS, deadline.remainingNanos()));
        }
    }

    private void advance() {
        while (!ended && arrived < loadBatch.count() && state(arrived) == ControlWord.SEALED) {
            arrived++;
        }
        if (arrived < loadBatch.count() && !ended) {
            int next = state(arrived);
            boolean comes = next == ControlWord.LOADING || next == ControlWord.LOADED || next == ControlWord.SEALED;
            ended = !comes || closed || deadline.isExpired();
        } else {
            ended = true;
        }
    }

    private int readyUntil() {
        return Math.max(blockRange.firstBlock, blockRange.residentBlocks + arrived);
    }

    @Override
    public int firstBlock() {
        return blockRange.firstBlock;
    }

    @Override
    public synchronized int endBlock() {
        advance();
        return ended ? readyUntil() : loadBatch.end();
    }

    @Override
    public synchronized int readyEnd() {
        advance();
        return readyUntil();
    }

    @Override
    public int await(int end, Duration timeout) {
        long awaitNanos = Timeouts.toNanos(timeout);
        long since = storeContext.clock().nanos();
        synchronized (this) {
            advance();
            while (readyUntil() < end && !ended) {
                long left = awaitNanos - (storeContext.clock().nanos() - since);
                if (left <= 0) {
                    break;
                }
                try {
                    minAwaited = Math.min(minAwaited, end);
                    storeContext.clock().await(this, left);
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    break;
                }
                advance();
            }
            return readyUntil();
        }
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        CompletableFuture<Integer> ready;
        synchronized (this) {
            ready = waiters.add(end, executor);
        }
        update();
        if (!ready.isDone()) {
            scheduleTimeout();
        }
        return ready;
    }

    @Override
    public synchronized MemorySegment segment(int index) {
        int page = records.hostPage(record(index));
        return HostBlockTable.StoreContext.bind(
                        scope, storeContext.store().slotSegment(page, blockRange.entry.blockBytes()))
                .asReadOnly();
    }

    @Override
    public synchronized int checksum(int index) {
        return records.checksum(record(index));
    }

    @Override
    public synchronized long handle(int index) {
        return records.handle(record(index));
    }

    private int record(int index) {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        int end = readyEnd();
        if (index < blockRange.firstBlock || index >= end) {
            throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + blockRange.firstBlock
                    + " to " + end + " (exclusive) are ready");
        }
        return index < blockRange.residentBlocks
                ? residentRecords()[index - blockRange.firstBlock]
                : loadBatch.record(index - blockRange.residentBlocks);
    }

    /// The records of the table's resident blocks, found by one walk over the parents.
    private int[] residentRecords() {
        int[] known = recordsInOrder;
        if (known == null) {
            known = new int[blockRange.residentBlocks - blockRange.firstBlock];
            int record = RecordHandle.record(blockRange.deepest);
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
        synchronized (this) {
            if (closed) {
                return;
            }
            advance();
            closed = true;
        }
        try {
            HostBlockTable.StoreContext.close(scope);
        } finally {
            timeout.cancel();
            release();
            storeContext.openHandles().release(openHandle);
        }
        update();
    }

    private void release() {
        blockRange.entry.countLoaded(readyUntil() - Math.max(blockRange.firstBlock, blockRange.residentBlocks));
        for (int i = 0; i < loadBatch.count(); i++) {
            if (storeContext.tierScheduler() != null) {
                storeContext.tierScheduler().loadListeners().remove(loadBatch.record(i), listener);
            }
            storeContext.store().lookup().unpin(loadBatch.record(i));
        }
        if (RecordHandle.isFound(blockRange.deepest)) {
            storeContext.store().lookup().unpin(RecordHandle.record(blockRange.deepest));
        }
    }
}
