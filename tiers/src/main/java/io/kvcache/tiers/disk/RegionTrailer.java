package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static io.kvcache.tiers.disk.DiskEntry.INT64;

import io.kvcache.tiers.disk.Region.RegionEpoch;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter.DurableExtent;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The end of a closed region: the entries of all its batches, so that recovery reads nothing else.
///
/// ```
/// table    entries, 64 bytes each, up to a whole page
/// footer   the region's last page, see Footer
/// ```
///
/// @param entries all blocks and tombstones of the region, in the order they lie
/// @param endedEpoch see [RegionFooter]
/// @param predecessor see [RegionFooter]
record RegionTrailer(RegionEpoch epoch, List<DiskEntry> entries, long endedEpoch, RegionPredecessor predecessor) {

    RegionTrailer {
        entries = List.copyOf(entries);
    }

    /// Pages of table and footer.
    static int pages(int entries) {
        return tablePages(entries) + 1;
    }

    static int tablePages(int entries) {
        return (int) ((entries * (long) DiskEntry.ENTRY_BYTES + DiskGeometry.PAGE_BYTES - 1) / DiskGeometry.PAGE_BYTES);
    }

    /// Pages of the longest table: every block is a page, and each needs a row. Heads are left out.
    static int maxTablePages(int regionPages) {
        return regionPages / DiskEntry.ENTRIES_PER_PAGE + 1;
    }

    /// Entries of the longest table. Tombstones take no pages, and a region ends when it reaches this count.
    static int maxEntries(int regionPages) {
        return maxTablePages(regionPages) * DiskEntry.ENTRIES_PER_PAGE;
    }

    /// Writes table and footer.
    ///
    /// @param target exactly [#pages] of the entries
    void write(MemorySegment target, int regionPages) {
        target.fill((byte) 0);
        for (int i = 0; i < entries.size(); i++) {
            entries.get(i).write(target, i);
        }
        long tableBytes = target.byteSize() - DiskGeometry.PAGE_BYTES;
        int checksum = MetadataCrc.of(target.asSlice(0, tableBytes));
        int tablePage = regionPages - pages(entries.size());
        new RegionFooter(
                        epoch,
                        entries.size(),
                        tablePage,
                        checksum,
                        DurableExtent.replacing(entries),
                        endedEpoch,
                        predecessor)
                .write(target.asSlice(tableBytes));
    }

    /// The region that was filled before another one. The trailer of the later region names it: regions are closed
    /// in their order, and before each trailer a sync makes all earlier ones durable. So where the later trailer is
    /// found, the earlier region is found as well, or its life is over, or its metadata is damaged.
    ///
    /// @param epoch number of the earlier region's life; 0 when none is known
    /// @param replaces whether it may hold entries that replace others, see [DurableExtent]
    record RegionPredecessor(long epoch, boolean replaces) {

        static final RegionPredecessor UNKNOWN = new RegionPredecessor(0, true);

        /// Returns whether the region must exist and is not found.
        ///
        /// @param endedEpoch lives up to this one have ended
        /// @param found lives of the regions that were found
        boolean isMissing(long endedEpoch, Set<Long> found) {
            return epoch > endedEpoch && !found.contains(epoch);
        }
    }

    /// The last page of a region: that it is closed and where its table lies, that it is free, or how much of it is
    /// durable while it is open.
    ///
    /// ```
    ///  0  int64  magic                  8  int32  CRC32C of the footer   12  int32  entries, -1 free, -2 open
    /// 16  life, 20 bytes               36  int32  page of the table      40  int32  CRC32C of the table
    /// 44  int32  entries that may replace others, and 1; 0 in footers of before
    /// 48  int64  life that is over
    /// 56  int64  of a closed region the life of its predecessor, or 0   64  int32  1 when that replaces nothing
    /// of an open region               36  int32  durable pages          40  int32  durable entries
    /// ```
    ///
    /// An open region has no table, and its batches are found one after another. A head that was damaged would hide
    /// all behind it, so a flush leaves here how many batches must be there ([DurableExtent]). Programs of before
    /// this footer take it for a damaged one, which means the same without that check.
    ///
    /// Footers also say which lives of the whole device are over, so that a tombstone never goes before what it
    /// buries. Regions are reclaimed in the order of their lives, but their footers need not become durable in
    /// it: one waits for a reader, one cannot be written at all. With the footer that ends the tombstone's life
    /// goes the word that all earlier ones have ended.
    ///
    /// @param epoch of a closed region its own; of a free region the last that had been given when it became free
    /// @param entries of the table, or [#FREE], or [#OPEN]
    /// @param tablePage where the table begins in the region; of an open region the durable pages
    /// @param tableChecksum of an open region the durable entries
    /// @param replacing entries that may replace others, see [DurableExtent]; or [#UNKNOWN]
    /// @param endedEpoch number of a life that had ended when this was written, with all earlier ones of the device
    /// @param predecessor of a closed region; unknown in footers of before
    record RegionFooter(
            RegionEpoch epoch,
            int entries,
            int tablePage,
            int tableChecksum,
            int replacing,
            long endedEpoch,
            RegionPredecessor predecessor) {

        /// Instead of a number of entries.
        static final int FREE = -1;

        /// Instead of a number of entries, while batches are added.
        static final int OPEN = -2;

        /// Instead of a number of entries that may replace others.
        static final int UNKNOWN = -1;

        private static final long MAGIC = 0x3152_4c54_4356_4b4bL; // "KKVCTLR1", little-endian

        /// The footer of a region that holds nothing.
        static RegionFooter free(RegionEpoch last, long endedEpoch) {
            return new RegionFooter(last, FREE, 0, 0, UNKNOWN, endedEpoch, RegionPredecessor.UNKNOWN);
        }

        /// The footer of a region that batches are added to.
        static RegionFooter open(RegionEpoch regionEpoch, DurableExtent durableExtent, long endedEpoch) {
            return new RegionFooter(
                    regionEpoch,
                    OPEN,
                    durableExtent.pages(),
                    durableExtent.entries(),
                    durableExtent.replacing(),
                    endedEpoch,
                    RegionPredecessor.UNKNOWN);
        }

        boolean isFree() {
            return entries == FREE;
        }

        boolean isOpen() {
            return entries == OPEN;
        }

        boolean isClosed() {
            return entries >= 0;
        }

        /// Returns the durable extent of an open region, or the written one of a closed region.
        DurableExtent durableExtent() {
            return isOpen()
                    ? new DurableExtent(tablePage, tableChecksum, replacing)
                    : new DurableExtent(0, entries, replacing);
        }

        /// Bytes of the table, in whole pages.
        long tableBytes() {
            return (long) RegionTrailer.tablePages(entries) * DiskGeometry.PAGE_BYTES;
        }

        /// @param page exactly a page
        void write(MemorySegment page) {
            page.fill((byte) 0);
            page.set(INT64, 0, MAGIC);
            page.set(INT32, 12, entries);
            epoch.write(page);
            page.set(INT32, 36, tablePage);
            page.set(INT32, 40, tableChecksum);
            page.set(INT32, 44, replacing + 1);
            page.set(INT64, 48, endedEpoch);
            page.set(INT64, 56, predecessor.epoch());
            page.set(INT32, 64, predecessor.replaces() ? 0 : 1);
            MetadataCrc.write(page);
        }

        /// Reads a footer, or answers null when the page is none, or damaged.
        static @Nullable RegionFooter read(MemorySegment page, int regionPages) {
            if (page.get(INT64, 0) != MAGIC || !MetadataCrc.matches(page)) {
                return null;
            }
            RegionFooter footer = new RegionFooter(
                    RegionEpoch.read(page),
                    page.get(INT32, 12),
                    page.get(INT32, 36),
                    page.get(INT32, 40),
                    page.get(INT32, 44) - 1,
                    page.get(INT64, 48),
                    new RegionPredecessor(page.get(INT64, 56), page.get(INT32, 64) == 0));
            boolean fits = footer.isClosed()
                    && footer.entries <= RegionTrailer.maxEntries(regionPages)
                    && footer.tablePage >= 0
                    && footer.tablePage + (long) RegionTrailer.pages(footer.entries) == regionPages;
            boolean open = footer.isOpen() && footer.tablePage >= 0 && footer.tablePage < regionPages;
            return fits || open || footer.isFree() ? footer : null;
        }

        /// The part of a region that was durable at some time, and must be found.
        ///
        /// @param pages from the region's start, in whole batches
        /// @param entries of those batches
        /// @param replacing of those, entries that may replace earlier ones by other content: tombstones, and
        ///     objects. A block's key stands for its bytes
        record DurableExtent(int pages, int entries, int replacing) {

            static final DurableExtent EMPTY = new DurableExtent(0, 0, 0);

            /// Entries that may replace others.
            static int replacing(List<DiskEntry> entries) {
                return (int) entries.stream()
                        .filter(entry -> entry.isTombstone() || entry.isObject())
                        .count();
            }

            DurableExtent plus(WriteBatchHeader batchHeader) {
                return new DurableExtent(
                        batchHeader.page() + batchHeader.pages(),
                        entries + batchHeader.entries().size(),
                        replacing + replacing(batchHeader.entries()));
            }
        }
    }
}
