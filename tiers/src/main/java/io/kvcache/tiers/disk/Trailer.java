package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// The end of a closed region: the entries of all its groups, so that recovery reads nothing else.
///
/// ```
/// table    entries, 64 bytes each, up to a whole page
/// footer   the region's last page, see Footer
/// ```
///
/// @param entries all blocks and tombstones of the region, in the order they lie
/// @param over see [Footer]
/// @param predecessor see [Footer]
record Trailer(Life life, List<DiskEntry> entries, long over, Predecessor predecessor) {

    Trailer {
        entries = List.copyOf(entries);
    }

    /// Pages of table and footer.
    static int pages(int entries) {
        return tablePages(entries) + 1;
    }

    static int tablePages(int entries) {
        return (int) ((entries * (long) EntryTable.ENTRY_BYTES + Geometry.PAGE_BYTES - 1) / Geometry.PAGE_BYTES);
    }

    /// Pages of the longest table: every block is a page, and each needs a row. Heads are left out.
    static int maxTablePages(int regionPages) {
        return regionPages / EntryTable.ENTRIES_A_PAGE + 1;
    }

    /// Entries of the longest table. Tombstones take no pages, and a region ends when it has so many.
    static int maxEntries(int regionPages) {
        return maxTablePages(regionPages) * EntryTable.ENTRIES_A_PAGE;
    }

    /// Writes table and footer.
    ///
    /// @param target exactly [#pages] of the entries
    void write(MemorySegment target, int regionPages) {
        target.fill((byte) 0);
        for (int i = 0; i < entries.size(); i++) {
            EntryTable.write(target, i, entries.get(i));
        }
        long tableBytes = target.byteSize() - Geometry.PAGE_BYTES;
        int checksum = Checksum.of(target.asSlice(0, tableBytes));
        int tablePage = regionPages - pages(entries.size());
        new Footer(life, entries.size(), tablePage, checksum, Durable.replacing(entries), over, predecessor)
                .write(target.asSlice(tableBytes));
    }
}
