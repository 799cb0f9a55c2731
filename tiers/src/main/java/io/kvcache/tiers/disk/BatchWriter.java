package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.LogIo.PagePool;
import io.kvcache.tiers.disk.OpenRegion.TrailerWriter;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter.DurableExtent;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.SequencedSet;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Packs appended entries into batches and adds them to the open region.
///
/// A batch takes the entries that wait, up to 63 blocks or the limit in bytes. A few batches are in flight at a
/// time; later entries wait for the next. So batches are small while there is little to do, and large when there is
/// much.
///
/// Entries kept from a reclaimed region go first, and the last free region is for them alone: callers' blocks wait
/// while no region is free beside the open one. So reclaiming always comes to its end.
///
/// A flush waits until all appended entries are written and every batch that only a trailer finds has its trailer.
/// Then it syncs.
final class BatchWriter {

    /// Batches in flight at a time: enough for the device to be busy while the next one is packed.
    private static final int MAX_IN_FLIGHT = 4;

    private final LogIo io;
    private final RegionTable regionTable;
    private final PagePool heads;
    private final TrailerWriter trailerWriter;
    private final LogLimits limits;
    private final Consumer<DiskEntry> onAppendBegun;
    private final Queue<PendingAppend> rewrites = new ArrayDeque<>();
    private final Queue<PendingAppend> appends = new ArrayDeque<>();
    private final SequencedSet<InFlightBatch> inFlight = new LinkedHashSet<>();
    private final List<FlushWaiter> flushes = new ArrayList<>();
    private @Nullable OpenRegion open;
    private long acceptedAppends;
    private long begunBatches;
    private long appended;
    private long appendedBytes;
    private long failedAppends;

    /// @param onAppendBegun called with each entry of a caller when its batch is begun
    BatchWriter(
            LogIo io,
            RegionTable regionTable,
            PagePool heads,
            TrailerWriter trailerWriter,
            LogLimits limits,
            Consumer<DiskEntry> onAppendBegun) {
        this.io = io;
        this.regionTable = regionTable;
        this.heads = heads;
        this.trailerWriter = trailerWriter;
        this.limits = limits;
        this.onAppendBegun = onAppendBegun;
    }

    boolean isFull() {
        return appends.size() >= limits.appends();
    }

    boolean isIdle() {
        return rewrites.isEmpty() && appends.isEmpty() && inFlight.isEmpty();
    }

    void append(DiskEntry entry, BufferList bufferList, LongConsumer completion) {
        appendLater(entry, bufferList, completion).setReady(entry, bufferList);
    }

    /// Appends what is not ready to be written yet. What is appended after it waits for it.
    ///
    /// @return to be told by [PendingAppend#setReady]
    PendingAppend appendLater(DiskEntry entry, BufferList bufferList, LongConsumer completion) {
        acceptedAppends++;
        PendingAppend append = new PendingAppend(entry, bufferList, WriteKind.BLOCK, address -> {
            if (address == LogAddress.NONE) {
                failedAppends++;
            } else {
                appended++;
                appendedBytes += entry.bytes();
            }
            completion.accept(address);
        });
        appends.add(append);
        return append;
    }

    /// Returns the entries that callers appended and that are being written.
    Stream<DiskEntry> inFlight() {
        return inFlight.stream().flatMap(BatchWriter::fromCallers);
    }

    private static Stream<DiskEntry> fromCallers(InFlightBatch batch) {
        return batch.appends().filter(append -> !append.isRewrite()).map(PendingAppend::entry);
    }

    /// Writes an entry of a reclaimed region again.
    void rewrite(DiskEntry entry, BufferList bufferList, LongConsumer completion) {
        PendingAppend rewrite = new PendingAppend(entry, bufferList, WriteKind.REWRITE, completion);
        rewrite.setReady(entry, bufferList);
        rewrites.add(rewrite);
    }

    /// Makes durable, findable after a crash, all that callers appended by now.
    void flushAppended(LogIo.SyncCallback callback) {
        flushes.add(new FlushWaiter(acceptedAppends, callback));
    }

    /// Makes durable, findable after a crash, all that has been written by now.
    void flushWritten(LogIo.SyncCallback callback) {
        flushes.add(new FlushWaiter(0, callback));
    }

    boolean isFlushed() {
        return flushes.isEmpty();
    }

    /// Advances all flushes. They do not wait for each other's turn: the flush of a reclaim makes the room that a
    /// caller's flush may wait for.
    void pumpFlushes() {
        List<FlushWaiter> ready = new ArrayList<>();
        for (FlushWaiter each : flushes) {
            if (io.isWritingHalted() || (isWritten(each) && !trailerWriter.hasBrokenRegion())) {
                ready.add(each);
            }
        }
        flushes.removeAll(ready);
        for (FlushWaiter each : ready) {
            sync(each);
        }
    }

    /// Returns whether all batches have ended that a flush waits for: those, from the first on, that have ended
    /// without one before them that has not.
    private boolean isWritten(FlushWaiter flush) {
        long begunAppends = acceptedAppends - appends.size();
        if (flush.batches == FlushWaiter.UNKNOWN && begunAppends >= flush.appends) {
            flush.batches = begunBatches;
        }
        long endedBatches =
                inFlight.isEmpty() ? begunBatches : inFlight.getFirst().number();
        return flush.batches != FlushWaiter.UNKNOWN && endedBatches >= flush.batches;
    }

    /// Syncs, and records the durable extent of the open region, so that an opening can tell when some of it is
    /// missing.
    private void sync(FlushWaiter flush) {
        OpenRegion region = open;
        DurableExtent extent = region == null ? DurableExtent.EMPTY : region.writtenExtent();
        io.sync(durable -> {
            if (durable && region != null) {
                writeDurableMark(region, extent, () -> flush.callback.onSynced(true));
            } else {
                flush.callback.onSynced(durable);
            }
        });
    }

    /// Records the durable extent of a region that is still open in its footer. Its first batch must be durable:
    /// while a footer is torn, the first head tells in which life the region is.
    ///
    /// @param then called at the end, whether the write succeeded or not
    private void writeDurableMark(OpenRegion region, DurableExtent extent, Runnable then) {
        MemorySegment page = region.equals(open) && !io.isWritingHalted() ? heads.acquire() : null;
        if (page == null || !region.beginMark(extent)) {
            if (page != null) {
                heads.release(page);
            }
            then.run();
            return;
        }
        RegionFooter.open(region.epoch(), extent, regionTable.endedEpoch()).write(page);
        io.write(WriteKind.TRAILER, page, regionTable.footerOffset(region.region()), _ -> {
            heads.release(page);
            region.endMark();
            then.run();
        });
    }

    /// Returns the pages that can be written again for sure, each entry counted with a head of its own and a page
    /// of trailer.
    int rewritePages() {
        if (regionTable.freeCount() > 0) {
            return regionTable.geometry().regionPages();
        }
        return open == null ? 0 : Math.max(0, open.freePages(0));
    }

    /// Begins as many batches as possible.
    ///
    /// @return the batches begun
    int pump() {
        if (io.isWritingHalted()) {
            return rejectAll(rewrites) + rejectAll(appends);
        }
        int begun = 0;
        while (inFlight.size() < MAX_IN_FLIGHT && beginBatch()) {
            begun++;
        }
        return begun;
    }

    /// Rejects all, up to the first that is not ready: its memory is still in use.
    private static int rejectAll(Queue<PendingAppend> queue) {
        int count = 0;
        for (PendingAppend next = queue.peek(); next != null && next.isReady(); next = queue.peek()) {
            queue.remove();
            next.complete(LogAddress.NONE);
            count++;
        }
        return count;
    }

    private boolean beginBatch() {
        PendingAppend first = firstPending();
        if (first == null) {
            return false;
        }
        OpenRegion into = regionFor(first);
        if (into == null) {
            return rejectUnfitting(first);
        }
        MemorySegment head = heads.acquire();
        if (head == null) {
            return false;
        }
        InFlightBatch batch = new InFlightBatch(begunBatches++, into, takeMembers(into), head, this::onBatchEnded);
        inFlight.add(batch);
        fromCallers(batch).forEach(onAppendBegun);
        batch.start(io, regionTable);
        return true;
    }

    private @Nullable PendingAppend firstPending() {
        PendingAppend rewrite = rewrites.peek();
        if (rewrite != null) {
            return rewrite;
        }
        PendingAppend append = regionTable.freeCount() > 0 ? appends.peek() : null;
        return append != null && append.isReady() ? append : null;
    }

    /// Returns the open region if it has room, else the next one, or null when there is none.
    private @Nullable OpenRegion regionFor(PendingAppend first) {
        if (open != null && open.freePages(1) >= first.entry().pages()) {
            return open;
        }
        if (regionTable.freeCount() < (first.isRewrite() ? 1 : 2)) {
            return null;
        }
        boolean replaces = open == null || open.mayReplaceEntries();
        if (open != null) {
            trailerWriter.enqueue(open);
            open = null;
        }
        RegionPredecessor before = new RegionPredecessor(regionTable.newestFullEpoch(), replaces);
        Region next = regionTable.openNext();
        open = next == null ? null : new OpenRegion(regionTable, next, before);
        return open;
    }

    /// Rejects the first entry if it is a kept one and no region is about to be free. That happens only when a region
    /// broke; callers' entries wait instead.
    private boolean rejectUnfitting(PendingAppend first) {
        if (!first.isRewrite() || regionTable.count(Region.State.FREEING) > 0) {
            return false;
        }
        rewrites.remove().complete(LogAddress.NONE);
        return true;
    }

    private List<PendingAppend> takeMembers(OpenRegion into) {
        List<PendingAppend> members = new ArrayList<>();
        long pages = 0;
        PendingAppend next = firstPending();
        while (next != null && members.size() < WriteBatchHeader.MAX_ENTRIES) {
            pages += next.entry().pages();
            boolean fits = pages <= into.freePages(members.size() + 1);
            boolean small = members.isEmpty() || pages * DiskGeometry.PAGE_BYTES <= limits.batchBytes();
            if (!fits || !small) {
                break;
            }
            members.add(next.isRewrite() ? rewrites.remove() : appends.remove());
            next = firstPending();
        }
        return members;
    }

    private void onBatchEnded(InFlightBatch batch) {
        inFlight.remove(batch);
        heads.release(batch.head());
        if (batch.hasFailed() && batch.into().equals(open)) {
            trailerWriter.enqueue(batch.into());
            open = null;
        }
        batch.notifyAppends();
    }

    long appended() {
        return appended;
    }

    long appendedBytes() {
        return appendedBytes;
    }

    long failedAppends() {
        return failedAppends;
    }

    /// A batch in flight: the head and every piece of every block is a write of its own, straight from the
    /// caller's memory. It is written when all of them are; if one fails, none of its blocks counts.
    private static final class InFlightBatch {

        private final long number;
        private final OpenRegion into;
        private final OpenRegion.PlacedBatch placed;
        private final List<PendingAppend> appends;
        private final MemorySegment head;
        private final Consumer<InFlightBatch> callback;
        private int left;
        private boolean failed;

        /// @param number counts batches in the order in which they are begun
        /// @param then called when all writes have ended
        InFlightBatch(
                long number,
                OpenRegion into,
                List<PendingAppend> appends,
                MemorySegment head,
                Consumer<InFlightBatch> then) {
            this.number = number;
            this.into = into;
            this.appends = appends;
            this.head = head;
            this.callback = then;
            this.placed =
                    into.placeBatch(appends.stream().map(PendingAppend::entry).toList());
        }

        /// Hands all writes over to the device.
        void start(LogIo io, RegionTable regionTable) {
            WriteBatchHeader batchHeader = placed.batchHeader();
            batchHeader.write(head);
            left = 1
                    + appends.stream()
                            .mapToInt(each -> each.bufferList().spans().size())
                            .sum();
            io.writeOnce(
                    WriteKind.HEAD, head, regionTable.offset(into.region(), batchHeader.page()), this::onWriteComplete);
            for (int i = 0; i < appends.size(); i++) {
                PendingAppend append = appends.get(i);
                long offset = regionTable.offset(
                        into.region(), batchHeader.entries().get(i).page());
                for (MemorySegment span : append.bufferList().spans()) {
                    io.writeOnce(append.kind(), span, offset, this::onWriteComplete);
                    offset += span.byteSize();
                }
            }
        }

        private void onWriteComplete(IoOutcome outcome) {
            failed |= !outcome.isDone();
            left--;
            if (left == 0) {
                if (!failed) {
                    placed.markWritten();
                }
                into.onBatchEnded(placed);
                callback.accept(this);
            }
        }

        Stream<PendingAppend> appends() {
            return appends.stream();
        }

        OpenRegion into() {
            return into;
        }

        MemorySegment head() {
            return head;
        }

        boolean hasFailed() {
            return failed;
        }

        /// Returns the number of the batch in the order in which batches were begun.
        long number() {
            return number;
        }

        /// Reports the addresses of its blocks to their callbacks.
        void notifyAppends() {
            List<DiskEntry> entries = placed.batchHeader().entries();
            for (int i = 0; i < appends.size(); i++) {
                long address = failed ? LogAddress.NONE : into.region().addressOf(entries.get(i));
                appends.get(i).complete(address);
            }
        }
    }

    /// A flush in progress. A batch that failed hides the heads behind it. So all batches that were begun before
    /// must have ended, those of callers and of reclaiming alike.
    private static final class FlushWaiter {

        static final long UNKNOWN = -1;

        final long appends;
        final LogIo.SyncCallback callback;
        long batches = UNKNOWN;

        FlushWaiter(long appends, LogIo.SyncCallback callback) {
            this.appends = appends;
            this.callback = callback;
        }
    }

    /// A block on its way into a batch.
    static final class PendingAppend {

        private final WriteKind kind;
        private final LongConsumer completion;
        private DiskEntry entry;
        private BufferList bufferList;
        private boolean ready;

        /// @param kind whether a caller appended it, or the log writes it again
        /// @param completion hears its address, or [LogAddress#NONE]
        PendingAppend(DiskEntry entry, BufferList bufferList, WriteKind kind, LongConsumer completion) {
            this.entry = entry;
            this.bufferList = bufferList;
            this.kind = kind;
            this.completion = completion;
        }

        /// It can be written now, as this.
        void setReady(DiskEntry written, BufferList memory) {
            entry = written;
            bufferList = memory;
            ready = true;
        }

        boolean isReady() {
            return ready;
        }

        DiskEntry entry() {
            return entry;
        }

        BufferList bufferList() {
            return bufferList;
        }

        WriteKind kind() {
            return kind;
        }

        boolean isRewrite() {
            return kind == WriteKind.REWRITE;
        }

        void complete(long address) {
            completion.accept(address);
        }
    }
}
