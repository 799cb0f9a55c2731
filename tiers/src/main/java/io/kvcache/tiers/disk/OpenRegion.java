package io.kvcache.tiers.disk;

import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.Region.RegionEpoch;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter.DurableExtent;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/// A region that batches are added to, until its trailer is written.
final class OpenRegion {

    private final Region region;
    private final RegionEpoch epoch;
    private final int regionPages;
    private final RegionPredecessor predecessor;
    private final List<PlacedBatch> batches = new ArrayList<>();
    private int nextPage;
    private int entries;
    private int inFlight;
    private boolean broken;
    private int followed;
    private DurableExtent writtenExtent = DurableExtent.EMPTY;
    private DurableExtent markedExtent = DurableExtent.EMPTY;

    OpenRegion(RegionTable regionTable, Region region, RegionPredecessor predecessor) {
        this.region = region;
        this.epoch = regionTable.epoch(region);
        this.regionPages = regionTable.geometry().regionPages();
        this.predecessor = predecessor;
    }

    /// A region that was open when the log ended; no more is added to it, because the remains of batches that
    /// were never finished may lie behind its last whole one. Its trailer is not written in the order of
    /// lives, so it names no predecessor.
    static OpenRegion recovered(RegionTable regionTable, Region region, List<DiskEntry> entries) {
        OpenRegion open = new OpenRegion(regionTable, region, RegionPredecessor.UNKNOWN);
        open.entries = entries.size();
        open.batches.add(new PlacedBatch(new WriteBatchHeader(open.epoch, 0, 0, entries), true));
        return open;
    }

    Region region() {
        return region;
    }

    RegionEpoch epoch() {
        return epoch;
    }

    /// Pages for the blocks of one more batch of the given number of entries; negative when they do not fit.
    int freePages(int count) {
        if (entries + count > RegionTrailer.maxEntries(regionPages)) {
            return -1;
        }
        return regionPages - nextPage - WriteBatchHeader.HEAD_PAGES - RegionTrailer.pages(entries + count);
    }

    /// Places a batch at the end.
    PlacedBatch placeBatch(List<DiskEntry> blocks) {
        PlacedBatch placed = new PlacedBatch(WriteBatchHeader.of(epoch, nextPage, blocks), false);
        batches.add(placed);
        nextPage += placed.batchHeader().pages();
        entries += blocks.size();
        inFlight++;
        return placed;
    }

    /// A batch has ended. After one that failed, later heads are not found without the trailer.
    void onBatchEnded(PlacedBatch placed) {
        inFlight--;
        broken |= !placed.isWritten();
    }

    /// Returns the extent of the batches from the first on that have been written, without one before them that has
    /// not.
    DurableExtent writtenExtent() {
        while (followed < batches.size() && batches.get(followed).isWritten()) {
            writtenExtent = writtenExtent.plus(batches.get(followed++).batchHeader());
        }
        return writtenExtent;
    }

    /// The footer is about to say what is durable; the trailer waits until it does.
    ///
    /// @return whether it does not say so yet
    boolean beginMark(DurableExtent durableExtent) {
        boolean more = durableExtent.pages() > markedExtent.pages();
        if (more) {
            markedExtent = durableExtent;
            inFlight++;
        }
        return more;
    }

    void endMark() {
        inFlight--;
    }

    /// Returns whether it may hold entries that replace others.
    boolean mayReplaceEntries() {
        return batches.stream()
                .anyMatch(placed -> DurableExtent.replacing(placed.batchHeader().entries()) > 0);
    }

    /// Batches, and the footer, on their way.
    int inFlight() {
        return inFlight;
    }

    /// Returns whether a batch failed.
    boolean isBroken() {
        return broken;
    }

    RegionTrailer toTrailer(long endedEpoch) {
        List<DiskEntry> written = new ArrayList<>(entries);
        for (PlacedBatch placed : batches) {
            if (placed.isWritten()) {
                written.addAll(placed.batchHeader().entries());
            }
        }
        return new RegionTrailer(epoch, written, endedEpoch, predecessor);
    }

    /// A batch with its place in a region, and whether it got there.
    static final class PlacedBatch {

        private final WriteBatchHeader batchHeader;
        private boolean written;

        PlacedBatch(WriteBatchHeader batchHeader, boolean written) {
            this.batchHeader = batchHeader;
            this.written = written;
        }

        WriteBatchHeader batchHeader() {
            return batchHeader;
        }

        boolean isWritten() {
            return written;
        }

        void markWritten() {
            written = true;
        }
    }

    /// Writes the trailers of regions that are full: once all their batches have ended the table, and when a sync
    /// has made batches and table durable the footer. So a footer that says CLOSED vouches for all of them, and
    /// where one is not found it was damaged. The footer before it, which says FREE, is not touched while the first
    /// head may still be lost. Trailers are written in the order of lives, so one vouches for that before it
    /// ([RegionTrailer.RegionPredecessor]).
    static final class TrailerWriter {

        private final LogIo io;
        private final RegionTable regionTable;
        private final MemorySegment buffer;
        private final Deque<OpenRegion> waiting = new ArrayDeque<>();
        private boolean writing;

        /// @param buffer [#bytes] of it
        TrailerWriter(LogIo io, RegionTable regionTable, MemorySegment buffer) {
            this.io = io;
            this.regionTable = regionTable;
            this.buffer = buffer;
        }

        /// Memory for regions of the given number of pages.
        static long bytes(int regionPages) {
            return (1L + RegionTrailer.maxTablePages(regionPages)) * DiskGeometry.PAGE_BYTES;
        }

        void enqueue(OpenRegion full) {
            full.region().transitionTo(Region.State.CLOSING);
            waiting.add(full);
        }

        /// Returns whether there are batches that are found by a trailer alone, and it is not written yet.
        boolean hasBrokenRegion() {
            return waiting.stream().anyMatch(OpenRegion::isBroken);
        }

        boolean isIdle() {
            return waiting.isEmpty();
        }

        void pump() {
            if (writing || io.isWritingHalted()) {
                return;
            }
            OpenRegion first = waiting.peek();
            if (first != null && first.inFlight() == 0) {
                writing = true;
                write(first);
            }
        }

        private void write(OpenRegion full) {
            RegionTrailer trailer = full.toTrailer(regionTable.endedEpoch());
            int pages = RegionTrailer.pages(trailer.entries().size());
            int regionPages = regionTable.geometry().regionPages();
            MemorySegment target = buffer.asSlice(0, (long) pages * DiskGeometry.PAGE_BYTES);
            trailer.write(target, regionPages);
            long tableBytes = target.byteSize() - DiskGeometry.PAGE_BYTES;
            MemorySegment footer = target.asSlice(tableBytes);
            if (tableBytes == 0) {
                writeFooter(full, footer);
                return;
            }
            long offset = regionTable.offset(full.region(), regionPages - pages);
            io.write(WriteKind.TRAILER, target.asSlice(0, tableBytes), offset, done -> {
                if (done) {
                    writeFooter(full, footer);
                } else {
                    fail(full);
                }
            });
        }

        private void writeFooter(OpenRegion full, MemorySegment footer) {
            io.sync(durable -> {
                if (durable) {
                    io.write(WriteKind.TRAILER, footer, regionTable.footerOffset(full.region()), done -> {
                        if (done) {
                            writing = false;
                            waiting.remove(full);
                            regionTable.addClosed(full.region());
                        } else {
                            fail(full);
                        }
                    });
                }
            });
        }

        private void fail(OpenRegion full) {
            io.stopWriting("the trailer of region " + full.region().index() + " cannot be written");
        }
    }
}
