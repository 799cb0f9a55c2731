package io.kvcache.transport.remote;

import io.kvcache.core.BlockTable;
import io.kvcache.core.store.ReadyWaiters;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.ucx.UcxReader;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Blocks that are here, in chain order, and perhaps more that will be: in this process's memory, or in
/// the server's where that is mapped.
///
/// The server keeps them pinned under a lease for as long as the table is open. If the lease is lost, what
/// lies in this process's memory stays as it is; of the rest [#valid] tells.
final class RemoteTable implements BlockTable {

    private final Wiring wiring;
    private final Attachment attachment;
    private final Span span;
    private final ViewScope scope;
    private final List<Block> arrived = new ArrayList<>();
    private final ReadyWaiters waiters = new ReadyWaiters();
    private int serverReady;
    private int end;
    private boolean fetching;
    private boolean ended;
    private boolean closed;

    /// Which blocks a table is of.
    ///
    /// @param lease of the server, or 0
    /// @param first block of the chain
    /// @param end block after the last that is expected
    /// @param blockBytes of each
    /// @param untilNanos when no more will come, by this machine's clock
    record Span(long lease, int first, int end, long blockBytes, long untilNanos) {}

    /// A block that can be read here. Whoever has it frees it.
    interface Block {

        /// All of it, read-only or not.
        MemorySegment segment();

        /// The checksum that it was sealed with.
        int checksum();

        /// Whether the segment has shown this block until now, and not another one.
        boolean valid();

        /// Nobody here reads it any more.
        void free();
    }

    RemoteTable(Wiring wiring, Attachment attachment, Span span) {
        this.wiring = wiring;
        this.attachment = attachment;
        this.span = span;
        end = span.end;
        scope = new ViewScope(wiring.options().checked());
        wiring.open().incrementAndGet();
        attachment.users().stay();
    }

    long blockBytes() {
        return span.blockBytes;
    }

    long lease() {
        return span.lease;
    }

    /// A block is here, and is the table's from now on.
    ///
    /// @param index block of the chain; any but the next is not wanted
    void arrive(int index, Block block) {
        synchronized (this) {
            if (closed || index != span.first + arrived.size()) {
                block.free();
                return;
            }
            arrived.add(block);
        }
        wake();
    }

    /// More is ready at the server, or less is to be expected.
    void progress(int ready, int newEnd) {
        synchronized (this) {
            serverReady = Math.max(serverReady, ready);
            end = newEnd;
        }
        fetch();
    }

    /// Has what is ready at the server brought here, unless that goes on already.
    private void fetch() {
        boolean begins;
        synchronized (this) {
            if (fetching || ended || closed) {
                return;
            }
            begins = serverReady > arrived.size();
            fetching = begins;
            ended = !begins && span.first + arrived.size() >= end;
        }
        if (begins) {
            begin();
        } else {
            wake();
        }
    }

    private void begin() {
        try {
            wiring.fetching().execute(this::fetchNow);
        } catch (RejectedExecutionException closing) {
            end();
        }
    }

    private void fetchNow() {
        int from;
        int count;
        synchronized (this) {
            from = span.first + arrived.size();
            count = serverReady - arrived.size();
        }
        boolean all = closed() || fetch(from, count);
        synchronized (this) {
            fetching = false;
        }
        if (all) {
            fetch();
        } else {
            end();
        }
    }

    private boolean fetch(int from, int count) {
        PlacedBlocks.Run run = new PlacedBlocks.Run(from, count);
        SharedStore store = attachment.shared();
        if (store != null) {
            return PlacedBlocks.read(wiring, attachment, store, this, run);
        }
        UcxReader fabric = attachment.fabric();
        return fabric == null
                ? BlockArrivals.read(wiring, attachment, this, from, count)
                : FabricBlocks.read(wiring, attachment, fabric, this, run);
    }

    private synchronized boolean closed() {
        return closed;
    }

    /// No more will come.
    void end() {
        synchronized (this) {
            ended = true;
        }
        attachment.forget(span.lease);
        wake();
    }

    void tick(long nowNanos) {
        if (span.untilNanos - nowNanos < 0) {
            end();
        }
    }

    private void wake() {
        Runnable tell;
        synchronized (this) {
            tell = waiters.takeReady(arrived.size(), ended || closed);
            notifyAll();
        }
        tell.run();
    }

    @Override
    public int firstBlock() {
        return span.first;
    }

    @Override
    public synchronized int endBlock() {
        return ended ? span.first + arrived.size() : end;
    }

    @Override
    public synchronized int readyBlocks() {
        return arrived.size();
    }

    @Override
    public int await(int blocks, long timeoutNanos) {
        Arguments.timeout(timeoutNanos);
        long start = System.nanoTime();
        synchronized (this) {
            long left = timeoutNanos;
            while (arrived.size() < blocks && !ended && !closed && left > 0) {
                try {
                    TimeUnit.NANOSECONDS.timedWait(this, Math.max(left, TimeUnit.MILLISECONDS.toNanos(1)));
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    break;
                }
                left = timeoutNanos - (System.nanoTime() - start);
            }
            return arrived.size();
        }
    }

    @Override
    public CompletionStage<Integer> onReady(int blocks, Executor executor) {
        CompletionStage<Integer> ready;
        synchronized (this) {
            ready = waiters.add(blocks, executor);
        }
        wake();
        return ready;
    }

    @Override
    public synchronized MemorySegment segment(int index) {
        return scope.limit(at(index).segment()).asReadOnly();
    }

    @Override
    public synchronized int checksum(int index) {
        return at(index).checksum();
    }

    @Override
    public synchronized boolean valid() {
        return !closed && arrived.stream().allMatch(Block::valid);
    }

    private Block at(int index) {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        if (index < span.first || index - span.first >= arrived.size()) {
            throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + span.first + " to "
                    + (span.first + arrived.size()) + " (exclusive) are ready");
        }
        return arrived.get(index - span.first);
    }

    @Override
    public void close() {
        @Nullable RuntimeException inUse = null;
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException("the table is closed twice");
            }
            closed = true;
            try {
                scope.close();
                arrived.forEach(Block::free);
            } catch (IllegalStateException busy) {
                inUse = busy;
            }
        }
        wiring.open().decrementAndGet();
        attachment.release(span.lease);
        attachment.users().leave();
        wake();
        if (inUse != null) {
            throw inUse;
        }
    }
}
