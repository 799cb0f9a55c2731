package io.kvcache.tiers.disk;

import io.kvcache.tiers.disk.RegionFooter.DurableExtent;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;

/// The end of a closed region: the entries of all its groups, so that recovery reads nothing else.
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

    /// Entries of the longest table. Tombstones take no pages, and a region ends when it has so many.
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

        /// Whether it must be there and is not found.
        ///
        /// @param endedEpoch lives up to this one have ended
        /// @param found lives of the regions that were found
        boolean isMissing(long endedEpoch, Set<Long> found) {
            return epoch > endedEpoch && !found.contains(epoch);
        }
    }
}
