package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredVerifier;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter.DurableExtent;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Reads the entries of one region at a time: from its trailer, or, if that is not there or damaged, from the
/// heads of its batches, from the first to the first that is not of this life.
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

    /// Memory for regions of the given number of pages.
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
        io.read(page, regionTable.footerOffset(region), this::onFooterRead);
    }

    Region region() {
        return region;
    }

    /// Returns whether all has been read; then the rest may be asked for.
    boolean isReady() {
        return ready;
    }

    int count() {
        return count;
    }

    DiskEntry entry(int index) {
        return DiskEntry.read(table, index);
    }

    /// Entries that were left out, because only their head vouches for them and they are not whole.
    int tornEntries() {
        return torn;
    }

    /// Returns whether these are known to be all entries of the region.
    boolean isComplete() {
        return complete;
    }

    /// Returns whether the footer could be read and does not say that the region is closed.
    boolean isUnclosed() {
        return unclosed;
    }

    /// Entries that were durable, as the footer says, and are not found any more: what held them is damaged.
    int lostEntries() {
        return complete ? 0 : Math.max(0, durableExtent.entries() - foundExtent.entries());
    }

    /// Returns whether the lost entries may have replaced earlier entries by other content, or have buried them.
    boolean losesReplacingEntries() {
        boolean known = durableExtent.replacing() != RegionFooter.UNKNOWN;
        return lostEntries() > 0 && (!known || durableExtent.replacing() > foundExtent.replacing());
    }

    /// Returns the predecessor that the trailer names, unknown when there is no trailer.
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
            io.read(rows, offset, read -> onTableRead(footer, rows, read));
        }
    }

    private void onTableRead(RegionFooter footer, MemorySegment rows, IoOutcome outcome) {
        if (outcome.isDone() && MetadataCrc.of(rows) == footer.tableChecksum()) {
            count = footer.entries();
            finish(true);
        } else {
            readHead();
        }
    }

    private void readHead() {
        io.read(page, regionTable.offset(region, nextHead), this::onHeadRead);
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
            BatchVerifier.Source source = new BatchVerifier.Source(io, regionTable, region, span);
            new BatchVerifier(source, batchHeader, sound -> add(batchHeader, sound)).read();
        } else {
            finish(false);
        }
    }

    private void add(WriteBatchHeader batchHeader, List<DiskEntry> sound) {
        for (DiskEntry entry : sound) {
            entry.write(table, count++);
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

    /// Reads the blocks of a batch that only its head vouches for, and finds out which of them are whole.
    ///
    /// Without this, a block that was being written again when the power went would hide the sound one that it
    /// was a copy of. It costs one reading of the regions that were open.
    private static final class BatchVerifier {

        /// Read at a time: sequential reads of this size are nearly as fast as larger ones.
        static final int SPAN_BYTES = 256 << 10;

        private final LogIo io;
        private final RegionTable regionTable;
        private final MemorySegment buffer;
        private final Region region;
        private final WriteBatchHeader batchHeader;
        private final Consumer<List<DiskEntry>> callback;
        private final List<DiskEntry> sound = new ArrayList<>();
        private int nextPage;
        private int index;
        private final StoredVerifier verifier = new StoredVerifier();
        private long verifiedBytes;
        private boolean failed;

        /// Place from which a batch is read.
        record Source(LogIo io, RegionTable regionTable, Region region, MemorySegment buffer) {}

        /// @param then told those that are whole, in their order
        BatchVerifier(Source source, WriteBatchHeader batchHeader, Consumer<List<DiskEntry>> then) {
            this.io = source.io;
            this.regionTable = source.regionTable;
            this.region = source.region;
            this.buffer = source.buffer;
            this.batchHeader = batchHeader;
            this.callback = then;
            this.nextPage = batchHeader.page() + WriteBatchHeader.HEAD_PAGES;
        }

        void read() {
            skipTombstones();
            int end = batchHeader.page() + batchHeader.pages();
            if (nextPage == end) {
                callback.accept(sound);
                return;
            }
            long left = (long) (end - nextPage) * DiskGeometry.PAGE_BYTES;
            MemorySegment span = buffer.asSlice(0, Math.min(left, SPAN_BYTES));
            long offset = regionTable.offset(region, nextPage);
            nextPage += (int) (span.byteSize() / DiskGeometry.PAGE_BYTES);
            io.read(span, offset, outcome -> onRead(span, outcome));
        }

        /// Tombstones have no bytes that could be torn.
        private void skipTombstones() {
            while (index < batchHeader.entries().size()
                    && batchHeader.entries().get(index).isTombstone()) {
                sound.add(batchHeader.entries().get(index));
                index++;
            }
        }

        private void onRead(MemorySegment span, IoOutcome outcome) {
            for (long at = 0; at < span.byteSize(); ) {
                at += verify(span.asSlice(at), outcome.isDone());
            }
            read();
        }

        /// Adds what belongs to the current block.
        ///
        /// @return bytes of the span that do
        private long verify(MemorySegment span, boolean done) {
            DiskEntry entry = batchHeader.entries().get(index);
            if (verifiedBytes == 0) {
                verifier.begin(entry.layout(), entry.bytes(), entry.checksum());
                failed = false;
            }
            long storedBytes = (long) entry.pages() * DiskGeometry.PAGE_BYTES;
            long taken = Math.min(storedBytes - verifiedBytes, span.byteSize());
            verifier.add(span.asSlice(0, taken));
            failed |= !done;
            verifiedBytes += taken;
            if (verifiedBytes == storedBytes) {
                if (!failed && verifier.isGood()) {
                    sound.add(entry);
                }
                index++;
                verifiedBytes = 0;
                skipTombstones();
            }
            return taken;
        }
    }
}
