package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Reads the entries of one region at a time: from its trailer, or, if that is not there or damaged, from the
/// heads of its groups, from the first to the first that is not of this life.
final class RegionEntryReader {

    private final LogIo io;
    private final RegionTable regionTable;
    private final MemorySegment page;
    private final MemorySegment span;
    private final MemorySegment table;
    private Region region = new Region(-1);
    private int count;
    private int torn;
    private int nextHead;
    private boolean ready = true;
    private boolean complete;
    private boolean unclosed;
    private RegionPredecessor predecessor = RegionPredecessor.UNKNOWN;
    private DurableExtent durableExtent = DurableExtent.EMPTY;
    private DurableExtent foundExtent = DurableExtent.EMPTY;

    /// @param memory [#bytes] of it
    RegionEntryReader(LogIo io, RegionTable regionTable, MemorySegment memory) {
        this.io = io;
        this.regionTable = regionTable;
        this.page = memory.asSlice(0, DiskGeometry.PAGE_BYTES);
        this.span = memory.asSlice(DiskGeometry.PAGE_BYTES, BatchVerifier.SPAN_BYTES);
        this.table = memory.asSlice(DiskGeometry.PAGE_BYTES + BatchVerifier.SPAN_BYTES);
    }

    /// Memory for regions of so many pages.
    static long bytes(int regionPages) {
        return (1L + RegionTrailer.maxTablePages(regionPages)) * DiskGeometry.PAGE_BYTES + BatchVerifier.SPAN_BYTES;
    }

    /// Begins to read the entries of a region, of the life that it is in.
    void read(Region next) {
        assert ready : "one at a time";
        region = next;
        count = 0;
        torn = 0;
        nextHead = 0;
        ready = false;
        complete = false;
        unclosed = false;
        predecessor = RegionPredecessor.UNKNOWN;
        durableExtent = DurableExtent.EMPTY;
        foundExtent = DurableExtent.EMPTY;
        io.deviceOperationQueue().add(DeviceOperation.read(page, regionTable.footerOffset(region), this::onFooterRead));
    }

    Region region() {
        return region;
    }

    /// Whether all has been read; then the rest may be asked for.
    boolean isReady() {
        return ready;
    }

    int count() {
        return count;
    }

    DiskEntry entry(int index) {
        return EntryCodec.read(table, index);
    }

    /// Entries that were left out, because only their head vouches for them and they are not whole.
    int tornEntries() {
        return torn;
    }

    /// Whether these are known to be all entries of the region.
    boolean isComplete() {
        return complete;
    }

    /// Whether the footer could be read and does not say that the region is closed.
    boolean isUnclosed() {
        return unclosed;
    }

    /// Entries that were durable, as the footer says, and are not found any more: what held them is damaged.
    int lostEntries() {
        return complete ? 0 : Math.max(0, durableExtent.entries() - foundExtent.entries());
    }

    /// Whether what is lost may have replaced earlier entries by other content, or have buried them.
    boolean losesReplacingEntries() {
        boolean known = durableExtent.replacing() != RegionFooter.UNKNOWN;
        return lostEntries() > 0 && (!known || durableExtent.replacing() > foundExtent.replacing());
    }

    /// What the trailer names, unknown when there is none.
    RegionPredecessor predecessor() {
        return predecessor;
    }

    private void onFooterRead(IoOutcome outcome) {
        RegionFooter footer = outcome.isDone() ? RegionFooter.read(page, pages()) : null;
        boolean own = footer != null && footer.epoch().equals(regionTable.epoch(region));
        boolean closed = own && footer != null && footer.isClosed();
        unclosed = outcome.isDone() && !closed;
        if (own && footer != null && !footer.isFree()) {
            durableExtent = footer.durableExtent();
            predecessor = footer.predecessor();
        }
        if (footer == null || !closed) {
            readHead();
        } else if (footer.entries() == 0) {
            finish(true);
        } else {
            MemorySegment rows = table.asSlice(0, footer.tableBytes());
            long offset = regionTable.offset(region, footer.tablePage());
            io.deviceOperationQueue().add(DeviceOperation.read(rows, offset, read -> onTableRead(footer, rows, read)));
        }
    }

    private void onTableRead(RegionFooter footer, MemorySegment rows, IoOutcome outcome) {
        if (outcome.isDone() && SegmentCrc.of(rows) == footer.tableChecksum()) {
            count = footer.entries();
            finish(true);
        } else {
            readHead();
        }
    }

    private void readHead() {
        io.deviceOperationQueue()
                .add(DeviceOperation.read(page, regionTable.offset(region, nextHead), this::onHeadRead));
    }

    private void onHeadRead(IoOutcome outcome) {
        WriteBatchHeader batchHeader = outcome.isDone() ? WriteBatchHeader.read(page) : null;
        boolean next = batchHeader != null
                && batchHeader.epoch().equals(regionTable.epoch(region))
                && batchHeader.page() == nextHead
                && batchHeader.page() + batchHeader.pages() < pages();
        if (batchHeader != null && next && batchHeader.page() + batchHeader.pages() <= durableExtent.pages()) {
            add(
                    batchHeader,
                    batchHeader.entries()); // durable: bytes that went bad since must not bring an older copy back
        } else if (batchHeader != null && next) {
            BatchVerifier.Source source =
                    new BatchVerifier.Source(io.deviceOperationQueue(), regionTable, region, span);
            new BatchVerifier(source, batchHeader, sound -> add(batchHeader, sound)).read();
        } else {
            finish(false);
        }
    }

    private void add(WriteBatchHeader batchHeader, List<DiskEntry> sound) {
        for (DiskEntry entry : sound) {
            EntryCodec.write(table, count++, entry);
        }
        torn += batchHeader.entries().size() - sound.size();
        if (unclosed && nextHead < durableExtent.pages()) {
            foundExtent = foundExtent.plus(batchHeader);
        } else if (!unclosed) {
            foundExtent = new DurableExtent(
                    0, foundExtent.entries() + sound.size(), foundExtent.replacing() + DurableExtent.replacing(sound));
        }
        nextHead += batchHeader.pages();
        readHead();
    }

    private void finish(boolean all) {
        complete = all;
        ready = true;
    }

    private int pages() {
        return regionTable.geometry().regionPages();
    }
}
