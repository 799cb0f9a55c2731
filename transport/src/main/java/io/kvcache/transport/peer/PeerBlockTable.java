package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.memory.ReadyWaiters;
import io.kvcache.core.time.Timeouts;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// A table that grows by blocks from peers. It begins with the store's table, and adds one for each group that was
/// fetched, whose blocks are all resident.
///
/// The readable blocks are a prefix. While the first table waits for a disk, or has lost a block, later tables
/// cannot be read.
final class PeerBlockTable implements BlockTable {

    private final BlockTable base;
    private final int baseEnd;
    private final int wantedEnd;
    private final PeerClock clock;
    private final List<BlockTable> more = new ArrayList<>();
    private final ReadyWaiters waiters = new ReadyWaiters();
    private int end;
    private boolean ended;
    private boolean closed;

    /// @param base what the store has; this table's from now on
    /// @param wantedEnd block of the chain after the last one that is wanted
    PeerBlockTable(BlockTable base, int wantedEnd, PeerClock clock) {
        this.base = base;
        this.wantedEnd = wantedEnd;
        this.clock = clock;
        baseEnd = base.endBlock();
        end = baseEnd;
        var _ = base.onReady(baseEnd, Runnable::run).thenRun(this::wake);
    }

    /// Returns the end of the blocks that the store itself had.
    int localEndBlock() {
        return baseEnd;
    }

    /// Adds the table of a fetched group, or closes it if this table has ended.
    ///
    /// @return the block after the last one now, or -1 when the table is closed
    int append(BlockTable table) {
        int after;
        synchronized (this) {
            if (!closed && !ended && table.firstBlock() == end) {
                more.add(table);
                end = table.readyEnd();
            } else {
                table.close();
            }
            after = closed ? -1 : end;
        }
        wake();
        return after;
    }

    /// Ends the table: no more blocks will arrive.
    void end() {
        synchronized (this) {
            ended = true;
        }
        wake();
    }

    synchronized boolean isFinished() {
        return closed || ended;
    }

    private void wake() {
        Runnable tell;
        synchronized (this) {
            tell = waiters.takeReady(closed ? firstBlock() : readyEnd(), closed || complete());
            clock.wake(this);
        }
        tell.run();
    }

    /// Returns whether no more blocks will become readable.
    private boolean complete() {
        boolean baseDone = base.readyEnd() == base.endBlock();
        return baseDone && (ended || base.endBlock() < baseEnd);
    }

    @Override
    public int firstBlock() {
        return base.firstBlock();
    }

    @Override
    public synchronized int endBlock() {
        if (base.endBlock() < baseEnd) {
            return base.endBlock();
        }
        return ended ? end : wantedEnd;
    }

    @Override
    public synchronized int readyEnd() {
        int ready = base.readyEnd();
        return ready == baseEnd ? end : ready;
    }

    @Override
    public int await(int untilBlock, Duration timeout) {
        long until = clock.deadlineAfter(Timeouts.toNanos(timeout));
        base.await(Math.min(untilBlock, baseEnd), timeout);
        try {
            boolean more = true;
            while (more && until - clock.nanos() > 0) {
                more = awaitOnce(untilBlock, until);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        synchronized (this) {
            return closed ? firstBlock() : readyEnd();
        }
    }

    /// Waits once; returns false if there was nothing to wait for.
    private synchronized boolean awaitOnce(int untilBlock, long untilNanos) throws InterruptedException {
        boolean waits = !closed && readyEnd() < untilBlock && !complete();
        if (waits) {
            clock.await(this, untilNanos);
        }
        return waits;
    }

    @Override
    public CompletionStage<Integer> onReady(int untilBlock, Executor executor) {
        if (untilBlock <= baseEnd) {
            return base.onReady(untilBlock, executor);
        }
        CompletionStage<Integer> ready;
        synchronized (this) {
            ready = waiters.add(untilBlock, executor);
        }
        wake();
        return ready;
    }

    @Override
    public MemorySegment segment(int index) {
        return tableAt(index).segment(index);
    }

    @Override
    public int checksum(int index) {
        return tableAt(index).checksum(index);
    }

    @Override
    public long handle(int index) {
        return tableAt(index).handle(index);
    }

    @Override
    public synchronized boolean isValid() {
        return base.isValid() && more.stream().allMatch(BlockTable::isValid);
    }

    /// Counts the blocks that the store left on its disks, when no peer had them.
    @Override
    public synchronized int blocksToRecompute() {
        return Math.max(0, base.blocksToRecompute() - (end - baseEnd));
    }

    private synchronized BlockTable tableAt(int index) {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        int ready = readyEnd();
        if (index < firstBlock() || index >= ready) {
            throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + firstBlock() + " to "
                    + ready + " (exclusive) are ready");
        }
        BlockTable of = base;
        for (BlockTable each : more) {
            of = index >= each.firstBlock() ? each : of;
        }
        return of;
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        wake();
        @Nullable RuntimeException failed = null;
        for (BlockTable each : more) {
            failed = closeCollecting(each, failed);
        }
        failed = closeCollecting(base, failed);
        if (failed != null) {
            throw failed;
        }
    }

    private static @Nullable RuntimeException closeCollecting(BlockTable table, @Nullable RuntimeException before) {
        try {
            table.close();
            return before;
        } catch (RuntimeException inUse) {
            return inUse;
        }
    }
}
