package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.DiskBlock;
import io.kvcache.core.RangeQuery;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.store.TierPort.DiskCopy;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/// Copies the same bytes of several blocks of a chain.
///
/// What is resident is copied while it is pinned. Of blocks that are on disk alone, a batch at a time,
/// only the part is read, where it lies. A part that cannot be read alone is copied out of its block,
/// which is loaded for that.
///
/// A read of a part may end long after its request has timed out, so it goes to memory of its own and
/// not to the caller's. That memory is limited for all requests together until the disk is done with it.
///
/// **Threads.** Any.
final class RangeReads {

    /// Of one request: as much as a disk needs to be busy, in parts of any size.
    private static final int MAX_BATCH_BYTES = 4 << 20;

    /// Of one request: as many as a disk reads at a time, several times over.
    private static final int MAX_BATCH_BLOCKS = 256;

    /// Of all requests: eight batches.
    private static final int MAX_PENDING_BYTES = 32 << 20;

    private final StoreContext storeContext;
    private final BlockReads blockReads;
    private final PendingBytes pendingBytes;

    RangeReads(StoreContext storeContext, BlockReads blockReads) {
        this.storeContext = storeContext;
        this.blockReads = blockReads;
        pendingBytes = new PendingBytes(storeContext.clock(), MAX_PENDING_BYTES);
    }

    /// As [io.kvcache.core.KvCache#getRange].
    int read(RangeQuery query, long timeoutNanos) {
        NamespaceEntry entry =
                storeContext.store().lookup().require(query.chain().namespace());
        OpenHandle openHandle = storeContext.openHandles().acquire(query.chain());
        try {
            return read(query, entry, Deadline.after(storeContext.clock(), timeoutNanos));
        } finally {
            storeContext.openHandles().release(openHandle);
        }
    }

    private int read(RangeQuery query, NamespaceEntry entry, Deadline deadline) {
        int from = query.from();
        entry.countRequest(query.end() - from, 0); // what is found counts as it is copied
        int at = from + copyFromHost(query, from, query.end(), Deadline.after(storeContext.clock(), 0));
        int known = deadline.isExpired() ? at : Math.max(at, blockReads.knownEnd(query.chain()));
        blockReads.reportAccess(query.chain(), from, known - from);
        TierScheduler by = storeContext.tierScheduler();
        boolean byParts = by != null && DiskBlock.isPart(query.range().bytes(), entry.blockBytes());
        if (by != null && byParts) {
            at = readParts(query, entry, at, known, new PartReader(by, deadline));
        }
        // What is left is loaded, or told by a disk that still recovers. A part that was not to be had is the end.
        boolean mayHaveMore = at < query.end() && (at >= known || !byParts);
        return at - from + (mayHaveMore && !deadline.isExpired() ? copyFromHost(query, at, query.end(), deadline) : 0);
    }

    /// Returns the block behind the last whose part was read.
    private int readParts(RangeQuery query, NamespaceEntry entry, int from, int known, PartReader reader) {
        int at = from;
        boolean more = true;
        while (more && at < known && !reader.deadline.isExpired()) {
            List<PartRead> batch = reader.start(query, at, known);
            reader.await(batch);
            int copied = copyBatch(query, entry, at, batch, reader.deadline);
            at += copied;
            more = copied == batch.size() && copied > 0;
        }
        return at;
    }

    /// Copies what has been read, up to the first block that is not there.
    private int copyBatch(RangeQuery query, NamespaceEntry entry, int from, List<PartRead> batch, Deadline deadline) {
        int end = from + batch.size();
        int at = from;
        int parts = 0;
        boolean more = true;
        while (more && at < end) {
            if (batch.get(at - from).isThere()) {
                MemorySegment part = batch.get(at - from).bytes();
                MemorySegment.copy(part, 0, query.into().get(at - query.from()), 0, part.byteSize());
                at++;
                parts++;
                continue;
            }
            int next = at + 1;
            while (next < end && !batch.get(next - from).isThere()) {
                next++;
            }
            at += copyFromHost(query, at, next, deadline);
            more = at == next;
        }
        entry.countLoaded(parts);
        return at - from;
    }

    /// Copies the ranges of blocks that are in host memory, or arrive there in time. Returns how many.
    private int copyFromHost(RangeQuery query, int from, int end, Deadline deadline) {
        try (BlockTable table = blockReads.acquireForRange(query.chain().prefix(end), from, deadline)) {
            int _ = table.await(table.endBlock(), Duration.ofNanos(Math.max(0, deadline.remainingNanos())));
            return query.copyReady(table);
        }
    }

    /// One part on its way.
    ///
    /// @param bytes memory of its own
    private record PartRead(MemorySegment bytes, CompletableFuture<Boolean> read) {

        /// Stands for a block that is not on disk alone.
        static final PartRead NONE = new PartRead(MemorySegment.NULL, CompletableFuture.completedFuture(false));

        /// Returns whether the bytes have come.
        boolean isThere() {
            return read.state() == Future.State.SUCCESS && read.resultNow();
        }
    }

    /// Reads the parts of one request.
    private final class PartReader {

        private final TierScheduler tierScheduler;
        private final Deadline deadline;

        PartReader(TierScheduler tierScheduler, Deadline deadline) {
            this.tierScheduler = tierScheduler;
            this.deadline = deadline;
        }

        /// Begins to read as many parts as make a batch, and as there is memory for. None when the time
        /// is over.
        List<PartRead> start(RangeQuery query, int from, int end) {
            int length = (int) query.range().bytes();
            int most = Math.clamp(MAX_BATCH_BYTES / length, 1, MAX_BATCH_BLOCKS);
            List<PartRead> batch = new ArrayList<>();
            boolean more = true;
            for (int index = from; more && index < end && batch.size() < most; index++) {
                DiskCopy copy = storeContext.store().tierPort().diskCopy(query.chain(), index);
                if (copy == null) {
                    batch.add(PartRead.NONE);
                } else if (batch.isEmpty() ? pendingBytes.acquire(length, deadline) : pendingBytes.tryAcquire(length)) {
                    batch.add(start(copy, (int) query.range().offset(), length));
                } else {
                    more = false;
                }
            }
            return batch;
        }

        private PartRead start(DiskCopy copy, int offset, int length) {
            MemorySegment bytes = MemorySegment.ofArray(new byte[length]);
            DiskBlock block = new TieredDiskBlock(storeContext.store().tierPort(), tierScheduler, copy, () -> {});
            return new PartRead(bytes, block.read(offset, bytes, () -> pendingBytes.release(length)));
        }

        /// Waits until all parts have come or failed, the time is over, or this thread is interrupted.
        void await(List<PartRead> batch) {
            CompletableFuture<Void> all =
                    CompletableFuture.allOf(batch.stream().map(PartRead::read).toArray(CompletableFuture[]::new));
            Object monitor = new Object();
            var _ = all.whenComplete((_, _) -> {
                synchronized (monitor) {
                    monitor.notifyAll();
                }
            });
            try {
                synchronized (monitor) {
                    while (!all.isDone() && !deadline.isExpired()) {
                        storeContext.clock().await(monitor, deadline.remainingNanos());
                    }
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /// Bytes of all requests that disks are reading, up to a limit.
    private static final class PendingBytes {

        private final Clock clock;
        private int free;

        PendingBytes(Clock clock, int limit) {
            this.clock = clock;
            free = limit;
        }

        /// Takes bytes, and waits for them until a deadline or an interrupt. Returns whether it has
        /// them.
        synchronized boolean acquire(int bytes, Deadline deadline) {
            try {
                while (free < bytes && !deadline.isExpired()) {
                    clock.await(this, deadline.remainingNanos());
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            return tryAcquire(bytes);
        }

        synchronized boolean tryAcquire(int bytes) {
            boolean enough = free >= bytes;
            free -= enough ? bytes : 0;
            return enough;
        }

        synchronized void release(int bytes) {
            free += bytes;
            notifyAll();
        }
    }

    /// Reads parts of a block or object from the disk that it is on.
    static final class TieredDiskBlock implements DiskBlock {

        private final TierPort tierPort;
        private final TierScheduler tierScheduler;
        private final TierPort.DiskCopy copy;
        private final Runnable onRead;

        /// @param onRead run for each part that a caller gets, on a thread that must not be held up
        TieredDiskBlock(TierPort tierPort, TierScheduler tierScheduler, TierPort.DiskCopy copy, Runnable onRead) {
            this.tierPort = tierPort;
            this.tierScheduler = tierScheduler;
            this.copy = copy;
            this.onRead = onRead;
        }

        @Override
        public int bytes() {
            return copy.block().bytes();
        }

        @Override
        public int checksum() {
            return copy.block().checksum();
        }

        @Override
        public CompletableFuture<Boolean> read(int from, MemorySegment target, Runnable onEnd) {
            if (from < 0 || target.byteSize() == 0 || from + target.byteSize() > bytes()) {
                throw new IndexOutOfBoundsException(
                        target.byteSize() + " bytes from " + from + " on; this block has " + bytes());
            }
            CompletableFuture<Boolean> outcome = new CompletableFuture<>();
            var _ = tierScheduler.readRange(copy, from, target).thenAccept(there -> {
                onEnd.run();
                if (there && !outcome.isDone()) {
                    tierPort.onUsed(copy.block());
                    onRead.run();
                }
                outcome.complete(there);
            });
            return outcome;
        }
    }
}
