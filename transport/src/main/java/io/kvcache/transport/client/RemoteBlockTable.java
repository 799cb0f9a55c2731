package io.kvcache.transport.client;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ReadyWaiters;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.LeaseNumbers;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Blocks that have arrived, in chain order, and perhaps more to come. They lie in this process's memory, or in
/// the server's mapped memory.
///
/// The server keeps them pinned under a lease while the table is open. If the lease is lost, blocks in this
/// process's memory stay as they are. [#isValid] answers for the others.
final class RemoteBlockTable implements BlockTable {

    private final RemoteContext client;
    private final RemoteSession session;
    private final LeasedRange range;
    private final SegmentLifetime scope;
    private final List<Block> receivedBlocks = new ArrayList<>();

    /// One entry for each run of mapped blocks, whose memory stays mapped until it is released.
    private final List<SharedStore> mappings = new ArrayList<>();
    private final ReadyWaiters waiters = new ReadyWaiters();
    private int serverReady;
    private int end;
    /// Of the last end that they were asked for.
    private @Nullable LeaseNumbers numbers;
    private boolean fetching;
    private boolean ended;
    private boolean closed;

    /// Blocks of a table.
    ///
    /// @param lease of the server, or 0
    /// @param first block of the chain
    /// @param end number after the last that is expected, see [LeaseNumbers]
    /// @param namespace of the chain
    /// @param untilNanos when no more will come, by this machine's clock
    record LeasedRange(long lease, int first, int end, Namespace namespace, long untilNanos) {}

    /// A readable block. Its owner frees it.
    interface Block {

        /// Returns the whole block, read-only or not.
        MemorySegment segment();

        /// Returns the checksum that it was sealed with.
        int checksum();

        /// Returns whether the segment has shown this block until now, and not another one.
        boolean isValid();

        /// Frees it: this client does not read it any more.
        void free();
    }

    RemoteBlockTable(RemoteContext client, RemoteSession session, LeasedRange leased) {
        this.client = client;
        this.session = session;
        this.range = leased;
        end = leased.end;
        scope = new SegmentLifetime(client.options().checked());
        client.openHandles().incrementAndGet();
    }

    Namespace namespace() {
        return range.namespace;
    }

    /// Returns the bytes of a block or entry.
    ///
    /// @param number as of [LeaseNumbers]
    /// @throws ProtocolException when the server has sent an end that no match has
    long bytes(int number) throws ProtocolException {
        return range.namespace.groups().isEmpty()
                ? range.namespace.blockBytes()
                : numbers().bytes(number);
    }

    /// Returns the numbers up to [#leasedEnd].
    ///
    /// @throws ProtocolException when the server has sent an end that no match has
    synchronized LeaseNumbers numbers() throws ProtocolException {
        LeaseNumbers known = numbers;
        if (known == null || known.total() != end) {
            known = LeaseNumbers.ofTotal(range.namespace, end);
            numbers = known;
        }
        return known;
    }

    /// Returns the number after the last that the server has or expects, also when not all of them arrive here.
    synchronized int leasedEnd() {
        return end;
    }

    long lease() {
        return range.lease;
    }

    /// Adds a block, which the table owns from now on.
    ///
    /// @param index block of the chain; any but the next is not wanted
    void addBlock(int index, Block block) {
        synchronized (this) {
            if (closed || index != readyUntil()) {
                block.free();
                return;
            }
            receivedBlocks.add(block);
        }
        wake();
    }

    /// Adds adjacent blocks in the server's memory.
    ///
    /// @param index of the first, as in [#addBlock]
    /// @param store retained once for all of them; released by the table
    void addMapped(int index, SharedStore store, List<MappedBlock> blocks) {
        synchronized (this) {
            if (closed || index != readyUntil()) {
                store.release();
                return;
            }
            mappings.add(store);
            receivedBlocks.addAll(blocks);
        }
        wake();
    }

    /// Notes that the server has more blocks ready, or that fewer are expected.
    void onProgress(int ready, int newEnd) {
        synchronized (this) {
            serverReady = Math.max(serverReady, ready);
            end = newEnd;
        }
        fetch();
    }

    /// Fetches the blocks that the server has ready, unless a fetch is running.
    private void fetch() {
        boolean begins;
        synchronized (this) {
            if (fetching || ended || closed) {
                return;
            }
            begins = serverReady > receivedBlocks.size();
            fetching = begins;
            ended = !begins && readyUntil() >= end;
        }
        if (begins) {
            begin();
        } else {
            wake();
        }
    }

    private void begin() {
        try {
            client.fetchExecutor().execute(this::fetchNow);
        } catch (RejectedExecutionException closing) {
            end();
        }
    }

    private void fetchNow() {
        int from;
        int count;
        synchronized (this) {
            from = readyUntil();
            count = serverReady - receivedBlocks.size();
        }
        boolean all = isClosed() || BlockReceiver.read(client, session, this, from, count);
        synchronized (this) {
            fetching = false;
        }
        if (all) {
            fetch();
        } else {
            end();
        }
    }

    private synchronized boolean isClosed() {
        return closed;
    }

    /// Ends the table: no more blocks will arrive.
    void end() {
        synchronized (this) {
            ended = true;
        }
        session.untrackLease(range.lease);
        wake();
    }

    void endIfExpired(long nowNanos) {
        if (range.untilNanos - nowNanos < 0) {
            end();
        }
    }

    private void wake() {
        Runnable tell;
        synchronized (this) {
            tell = waiters.takeReady(readyUntil(), ended || closed);
            notifyAll();
        }
        tell.run();
    }

    @Override
    public int firstBlock() {
        return range.first;
    }

    @Override
    public synchronized int endBlock() {
        return ended ? readyUntil() : end;
    }

    @Override
    public synchronized int readyEnd() {
        return readyUntil();
    }

    private int readyUntil() {
        return range.first + receivedBlocks.size();
    }

    @Override
    public int await(int untilBlock, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        long start = System.nanoTime();
        synchronized (this) {
            long left = timeoutNanos;
            while (readyUntil() < untilBlock && !ended && !closed && left > 0) {
                try {
                    TimeUnit.NANOSECONDS.timedWait(this, Math.max(left, TimeUnit.MILLISECONDS.toNanos(1)));
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    break;
                }
                left = timeoutNanos - (System.nanoTime() - start);
            }
            return readyUntil();
        }
    }

    @Override
    public CompletionStage<Integer> onReady(int untilBlock, Executor executor) {
        CompletionStage<Integer> ready;
        synchronized (this) {
            ready = waiters.add(untilBlock, executor);
        }
        wake();
        return ready;
    }

    @Override
    public synchronized MemorySegment segment(int index) {
        return scope.confine(at(index).segment()).asReadOnly();
    }

    @Override
    public synchronized int checksum(int index) {
        return at(index).checksum();
    }

    @Override
    public synchronized boolean isValid() {
        return !closed && receivedBlocks.stream().allMatch(Block::isValid);
    }

    /// @return always [io.kvcache.core.tree.RecordHandle#MISS]: the records are in the server
    @Override
    public synchronized long handle(int index) {
        at(index);
        return RecordHandle.MISS;
    }

    /// @return always 0: the server does not say which blocks it left on its disks
    @Override
    public int blocksToRecompute() {
        return 0;
    }

    private Block at(int index) {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        if (index < range.first || index - range.first >= receivedBlocks.size()) {
            throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + range.first + " to "
                    + (range.first + receivedBlocks.size()) + " (exclusive) are ready");
        }
        return receivedBlocks.get(index - range.first);
    }

    @Override
    public void close() {
        @Nullable RuntimeException inUse = null;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            try {
                scope.close();
                receivedBlocks.forEach(Block::free);
                mappings.forEach(SharedStore::release);
            } catch (IllegalStateException busy) {
                inUse = busy;
            }
        }
        client.openHandles().decrementAndGet();
        session.release(range.lease);
        wake();
        if (inUse != null) {
            throw inUse;
        }
    }

    /// A block in memory of this process.
    record ReceivedBlock(ReceiveBuffers.PooledBuffer buffer, long bytes, int checksum)
            implements RemoteBlockTable.Block {

        @Override
        public MemorySegment segment() {
            return buffer.segment(bytes);
        }

        @Override
        public boolean isValid() {
            return true;
        }

        @Override
        public void free() {
            buffer.free();
        }
    }

    /// A block in the server's memory, which is mapped read-only. The server keeps it there while the lease lasts.
    ///
    /// @param store that the table keeps mapped
    /// @param page where it lies
    record MappedBlock(SharedStore store, long handle, int page, long bytes) implements Block {

        @Override
        public MemorySegment segment() {
            return store.slot(page, bytes);
        }

        @Override
        public int checksum() {
            return store.checksum(handle);
        }

        @Override
        public boolean isValid() {
            return store.isCurrent(handle);
        }

        /// Does nothing: the run of blocks that it is of keeps the memory.
        @Override
        public void free() {}
    }
}
