package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.memory.ReadyWaiters;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Blocks that are resident in host memory, and after them such as arrive from disk.
///
/// One pin on the deepest resident block, and one on each of those that come, from the start; so
/// whatever other threads load or evict, a block that has arrived stays. What has arrived is read off the
/// records: the table is woken when something changed, and looks.
final class LoadingBlockTable implements BlockTable {

    private static final long MIN_TIMER_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final StoreContext storeContext;
    private final OpenHandle openHandle;
    private final BlockRange blockRange;
    private final LoadBatch loadBatch;
    private final RecordPool records;
    private final @Nullable Arena scope;
    private final Runnable listener = this::update;
    private final ReadyWaiters waiters = new ReadyWaiters();
    private final ReadyWaiters layerWaiters = new ReadyWaiters();
    private final DelayedTask timeout = new DelayedTask(this::onTimeout);
    private final Deadline deadline;

    /// Loaded blocks that still may come. Fewer than the batch once one in it does not.
    private int coming;

    /// Layers that all of them have, and how many of them, from the first on, have one more.
    private int layers;

    private int withNextLayer;

    /// Blocks that did not come after all, and what they had by then, the last ones first.
    private @Nullable LostBlocks lost;
    private int @Nullable [] recordsInOrder;
    private int arrived;
    private boolean ended;
    private boolean closed;

    /// No thread in [#await] is woken for fewer blocks: a block may arrive every few microseconds.
    private int minAwaited = Integer.MAX_VALUE;

    /// Blocks behind those that come; their slots stay until the table is closed.
    ///
    /// @param end behind the last, as a place in the batch
    /// @param layers that each of them has
    /// @param others lost before, from `end` on
    private record LostBlocks(int end, int layers, @Nullable LostBlocks others) {}

    /// Blocks of the table.
    ///
    /// @param deepest handle of the deepest resident one, or a miss
    /// @param residentBlocks blocks of the chain that are resident
    /// @param loadBatch those after them that come
    /// @param firstBlock of the table
    /// @param layerBytes of a block's layer, of a table whose blocks come layer by layer; else 0
    record BlockRange(
            NamespaceEntry entry,
            long deepest,
            int residentBlocks,
            LoadBatch loadBatch,
            int firstBlock,
            int layerBytes,
            boolean counts) {}

    /// Takes over all pins, and a hold.
    ///
    /// @param deadline until when blocks may go on arriving
    LoadingBlockTable(StoreContext storeContext, OpenHandle openHandle, BlockRange blockRange, Deadline deadline) {
        this.storeContext = storeContext;
        this.openHandle = openHandle;
        this.blockRange = blockRange;
        this.deadline = deadline;
        loadBatch = blockRange.loadBatch;
        coming = loadBatch.count();
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
        Runnable tellOfLayers;
        boolean over;
        synchronized (this) {
            int layersBefore = layers;
            advance();
            over = ended;
            int ready = readyUntil();
            tell = waiters.takeReady(ready, ended);
            tellOfLayers = layerWaiters.takeReady(layersNow(), ended);
            if (ended || ready >= minAwaited || layers > layersBefore) {
                minAwaited = Integer.MAX_VALUE;
                notifyAll();
            }
        }
        if (over) {
            timeout.cancel();
        }
        tell.run();
        tellOfLayers.run();
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
        while (!ended && arrived < coming && state(arrived) == ControlWord.SEALED) {
            arrived++;
        }
        if (arrived < coming && !ended) {
            ended = !comes(arrived) || closed || deadline.isExpired();
        } else {
            ended = true;
        }
        if (blockRange.layerBytes > 0 && !ended) {
            advanceLayers();
        } else if (blockRange.layerBytes > 0 && arrived < coming) {
            endAt(arrived);
        }
    }

    private boolean comes(int position) {
        int next = state(position);
        return next == ControlWord.LOADING || next == ControlWord.LOADED || next == ControlWord.SEALED;
    }

    /// Goes on from the first block that has not the next layer; the table ends before one that does not come.
    private void advanceLayers() {
        int blockBytes = blockRange.entry.blockBytes();
        while ((layers + 1L) * blockRange.layerBytes <= blockBytes) {
            while (withNextLayer < coming && has(withNextLayer, (layers + 1) * blockRange.layerBytes)) {
                withNextLayer++;
            }
            if (withNextLayer < coming && !comes(withNextLayer)) {
                endAt(withNextLayer);
            }
            if (withNextLayer < coming) {
                return;
            }
            layers++;
            withNextLayer = 0;
        }
    }

    /// Only the given number of leading blocks of the batch come.
    private void endAt(int position) {
        lost = new LostBlocks(coming, layers, lost);
        coming = position;
    }

    private boolean has(int position, int bytes) {
        int state = state(position);
        return state == ControlWord.SEALED
                || state == ControlWord.LOADED
                || (state == ControlWord.LOADING && loadListeners().arrivedBytes(loadBatch.record(position)) >= bytes);
    }

    private TierScheduler.LoadListeners loadListeners() {
        return Objects.requireNonNull(storeContext.tierScheduler()).loadListeners();
    }

    /// Layers of a block that were here when the table last knew of it.
    private int layersOf(int position) {
        if (position < coming) {
            return layers;
        }
        LostBlocks of = lost;
        while (of != null && position >= of.end) {
            of = of.others;
        }
        return of == null ? 0 : of.layers;
    }

    private int layersNow() {
        return ended ? ALL_LAYERS : layers;
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
        return ended ? readyUntil() : loadBatch.from() + coming;
    }

    @Override
    public synchronized int readyEnd() {
        advance();
        return readyUntil();
    }

    @Override
    public synchronized int await(int end, Duration timeout) {
        await(timeout, () -> {
            minAwaited = Math.min(minAwaited, end);
            return readyUntil() >= end;
        });
        return readyUntil();
    }

    /// Waits until a condition holds, no more will come, or the timeout passes; under the lock.
    private void await(Duration timeout, BooleanSupplier condition) {
        long awaitNanos = Timeouts.toNanos(timeout);
        long since = storeContext.clock().nanos();
        advance();
        while (!condition.getAsBoolean() && !ended) {
            long left = awaitNanos - (storeContext.clock().nanos() - since);
            if (left <= 0) {
                return;
            }
            try {
                storeContext.clock().await(this, left);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                return;
            }
            advance();
        }
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return onReady(waiters, end, executor);
    }

    private CompletionStage<Integer> onReady(ReadyWaiters of, int end, Executor executor) {
        CompletableFuture<Integer> ready;
        synchronized (this) {
            ready = of.add(end, executor);
        }
        update();
        if (!ready.isDone()) {
            scheduleTimeout();
        }
        return ready;
    }

    @Override
    public synchronized int readyLayers() {
        advance();
        return layersNow();
    }

    @Override
    public synchronized int awaitLayers(int layers, Duration timeout) {
        await(timeout, () -> layersNow() >= layers);
        return layersNow();
    }

    @Override
    public CompletionStage<Integer> onLayers(int layers, Executor executor) {
        return onReady(layerWaiters, layers, executor);
    }

    @Override
    public synchronized MemorySegment readySegment(int index) {
        requireOpen();
        int ready = readyEnd();
        if (index < ready) {
            return segment(index);
        }
        int position = index - blockRange.residentBlocks;
        int here = layersOf(position);
        if (here == 0) {
            return MemorySegment.NULL;
        }
        int page = records.hostPage(loadBatch.record(position));
        long bytes = (long) here * blockRange.layerBytes;
        return StoreContext.bind(scope, storeContext.store().slotSegment(page, bytes))
                .asReadOnly();
    }

    @Override
    public synchronized MemorySegment segment(int index) {
        int page = records.hostPage(record(index));
        return StoreContext.bind(scope, storeContext.store().slotSegment(page, blockRange.entry.blockBytes()))
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
        requireOpen();
        int end = readyEnd();
        if (index < blockRange.firstBlock || index >= end) {
            throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + blockRange.firstBlock
                    + " to " + end + " (exclusive) are ready");
        }
        return index < blockRange.residentBlocks
                ? residentRecords()[index - blockRange.firstBlock]
                : loadBatch.record(index - blockRange.residentBlocks);
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
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
            StoreContext.close(scope);
        } finally {
            timeout.cancel();
            release();
            storeContext.openHandles().release(openHandle);
        }
        update();
    }

    private void release() {
        if (blockRange.counts) {
            blockRange.entry.countLoaded(readyUntil() - Math.max(blockRange.firstBlock, blockRange.residentBlocks));
        }
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
