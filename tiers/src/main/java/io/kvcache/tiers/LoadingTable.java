package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.store.LoadBatch;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.store.ReadyWaiters;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Blocks that are resident in host memory, and after them such as arrive from disk.
///
/// One pin on the deepest resident block, and one on each of those that come, from the start; so
/// whoever else loads or evicts, a block that has arrived stays. What has arrived is read off the
/// records: the table is told when to look, and looks.
final class LoadingTable implements BlockTable {

    private static final long LEAST_TIMER_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final HostTable.Source source;
    private final Hold hold;
    private final Blocks blocks;
    private final LoadBatch loads;
    private final RecordPool records;
    private final SegmentScope scope;
    private final Runnable listener = this::look;
    private final ReadyWaiters waiters = new ReadyWaiters();
    private final Alarm timeout = new Alarm(this::timedOut);
    private final Deadline deadline;
    private int @Nullable [] inOrder;
    private int arrived;
    private boolean ended;
    private boolean closed;

    /// Nobody in [#await] wants to be woken for less: a block may arrive every few microseconds.
    private int leastAwaited = Integer.MAX_VALUE;

    /// Which blocks they are.
    ///
    /// @param deepest handle of the deepest resident one, or a miss
    /// @param here blocks of the chain that are resident
    /// @param loads those after them that come
    /// @param firstBlock of the table
    record Blocks(NamespaceEntry entry, long deepest, int here, LoadBatch loads, int firstBlock) {}

    /// Takes over all pins, and a hold.
    ///
    /// @param deadline until when blocks may go on arriving
    LoadingTable(HostTable.Source source, Hold hold, Blocks blocks, Deadline deadline) {
        this.source = source;
        this.hold = hold;
        this.blocks = blocks;
        this.deadline = deadline;
        loads = blocks.loads;
        records = source.store().records();
        scope = SegmentScope.open(source.checked());
        for (int i = 0; i < loads.count(); i++) {
            if (state(i) != ControlWord.SEALED && source.movement() != null) {
                source.movement().arrivals().listen(loads.record(i), listener);
            }
        }
        look();
    }

    private int state(int position) {
        return ControlWord.state(records.control(loads.record(position)));
    }

    /// Counts what has arrived, and tells who waits for it.
    private void look() {
        Runnable tell;
        boolean over;
        synchronized (this) {
            advance();
            over = ended;
            tell = waiters.takeReady(ready(), ended);
            if (ended || ready() >= leastAwaited) {
                leastAwaited = Integer.MAX_VALUE;
                notifyAll();
            }
        }
        if (over) {
            timeout.cancel();
        }
        tell.run();
    }

    private void timedOut() {
        look();
        setTimeout(); // again, where the store's clock goes slower than the machine's
    }

    private void setTimeout() {
        boolean goesOn;
        synchronized (this) {
            goesOn = !ended;
        }
        if (goesOn) {
            timeout.in(Math.max(LEAST_TIMER_NANOS, deadline.left()));
        }
    }

    private void advance() {
        while (!ended && arrived < loads.count() && state(arrived) == ControlWord.SEALED) {
            arrived++;
        }
        if (arrived < loads.count() && !ended) {
            int next = state(arrived);
            boolean comes = next == ControlWord.LOADING || next == ControlWord.LOADED || next == ControlWord.SEALED;
            ended = !comes || closed || deadline.over();
        } else {
            ended = true;
        }
    }

    private int ready() {
        return Math.max(0, blocks.here + arrived - blocks.firstBlock);
    }

    @Override
    public int firstBlock() {
        return blocks.firstBlock;
    }

    @Override
    public synchronized int endBlock() {
        advance();
        return ended ? blocks.firstBlock + ready() : loads.end();
    }

    @Override
    public synchronized int readyBlocks() {
        advance();
        return ready();
    }

    @Override
    public int await(int wanted, long awaitNanos) {
        Waiting.requireNotNegative(awaitNanos);
        long since = source.clock().nanos();
        synchronized (this) {
            advance();
            while (ready() < wanted && !ended) {
                long left = awaitNanos - (source.clock().nanos() - since);
                if (left <= 0) {
                    break;
                }
                try {
                    leastAwaited = Math.min(leastAwaited, wanted);
                    source.clock().await(this, left);
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    break;
                }
                advance();
            }
            return ready();
        }
    }

    @Override
    public CompletionStage<Integer> onReady(int wanted, Executor executor) {
        CompletableFuture<Integer> ready;
        synchronized (this) {
            ready = waiters.add(wanted, executor);
        }
        look();
        if (!ready.isDone()) {
            setTimeout();
        }
        return ready;
    }

    @Override
    public synchronized MemorySegment segment(int index) {
        int page = records.hostPage(record(index));
        return scope.limit(source.store().slotSegment(page, blocks.entry.blockBytes()))
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
        int end = blocks.firstBlock + readyBlocks();
        if (index < blocks.firstBlock || index >= end) {
            throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + blocks.firstBlock
                    + " to " + end + " (exclusive) are ready");
        }
        return index < blocks.here ? resident()[index - blocks.firstBlock] : loads.record(index - blocks.here);
    }

    /// The records of the table's resident blocks, found by one walk over the parents.
    private int[] resident() {
        int[] known = inOrder;
        if (known == null) {
            known = new int[blocks.here - blocks.firstBlock];
            int record = RecordHandle.record(blocks.deepest);
            for (int i = known.length - 1; i >= 0; i--) {
                known[i] = record;
                record = records.parent(record);
            }
            inOrder = known;
        }
        return known;
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException("the table is closed twice");
            }
            advance();
            closed = true;
        }
        try {
            scope.close();
        } finally {
            timeout.cancel();
            letGo();
            source.holders().leave(hold);
        }
        look();
    }

    private void letGo() {
        blocks.entry.countLoaded(Math.max(0, ready() - Math.max(0, blocks.here - blocks.firstBlock)));
        for (int i = 0; i < loads.count(); i++) {
            if (source.movement() != null) {
                source.movement().arrivals().forget(loads.record(i), listener);
            }
            source.store().lookup().unpin(loads.record(i));
        }
        if (RecordHandle.isFound(blocks.deepest)) {
            source.store().lookup().unpin(RecordHandle.record(blocks.deepest));
        }
    }
}
