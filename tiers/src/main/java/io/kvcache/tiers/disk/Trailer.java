package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryTable.INT32;
import static io.kvcache.tiers.disk.EntryTable.INT64;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The end of a closed region: the entries of all its groups, so that recovery reads nothing else.
///
/// ```
/// table    entries, 64 bytes each, up to a whole page
/// footer   the region's last page:
///           0  int64  magic                8  int32  CRC32C of the footer   12  int32  entries
///          16  int64  region's sequence   24  int32  page of the table      28  int32  CRC32C of the table
/// ```
///
/// @param sequence counts the lives of regions over the whole device: of two regions the higher was opened later
/// @param entries all blocks of the region, in the order they were written
public record Trailer(long sequence, List<DiskEntry> entries) {

    private static final long MAGIC = 0x3152_4c54_4356_4b4bL; // "KKVCTLR1", little-endian

    public Trailer {
        entries = List.copyOf(entries);
    }

    /// What a footer tells before the table is read.
    ///
    /// @param tablePage where the table begins in the region
    public record Footer(long sequence, int entries, int tablePage, int tableChecksum) {

        /// Bytes of the table, in whole pages.
        public long tableBytes() {
            return (long) tablePages(entries) * Geometry.PAGE_BYTES;
        }
    }

    /// Pages of table and footer.
    public static int pages(int entries) {
        return tablePages(entries) + 1;
    }

    private static int tablePages(int entries) {
        return Math.ceilDiv(entries * EntryTable.ENTRY_BYTES, Geometry.PAGE_BYTES);
    }

    /// Writes table and footer.
    ///
    /// @param target exactly [#pages] of the entries
    /// @param page where the table begins in its region
    public void write(MemorySegment target, int page) {
        target.fill((byte) 0);
        for (int i = 0; i < entries.size(); i++) {
            EntryTable.write(target, i, entries.get(i));
        }
        long tableBytes = target.byteSize() - Geometry.PAGE_BYTES;
        MemorySegment footer = target.asSlice(tableBytes);
        footer.set(INT64, 0, MAGIC);
        footer.set(INT32, 12, entries.size());
        footer.set(INT64, 16, sequence);
        footer.set(INT32, 24, page);
        footer.set(INT32, 28, Checksum.of(target.asSlice(0, tableBytes)));
        Seal.close(footer);
    }

    /// Reads a footer, or answers null when the region was not closed or the page is damaged.
    ///
    /// @param page the region's last page
    public static @Nullable Footer readFooter(MemorySegment page, int regionPages) {
        if (page.get(INT64, 0) != MAGIC || !Seal.holds(page)) {
            return null;
        }
        Footer footer = new Footer(page.get(INT64, 16), page.get(INT32, 12), page.get(INT32, 24), page.get(INT32, 28));
        boolean fits = footer.entries >= 0
                && footer.tablePage >= 0
                && footer.tablePage + (long) pages(footer.entries) == regionPages;
        return fits ? footer : null;
    }

    /// Reads the table that a footer tells of, or answers null when it is damaged.
    ///
    /// @param table exactly [Footer#tableBytes]
    public static @Nullable Trailer readTable(Footer footer, MemorySegment table) {
        if (Checksum.of(table) != footer.tableChecksum) {
            return null;
        }
        List<DiskEntry> entries = new ArrayList<>(footer.entries);
        for (int i = 0; i < footer.entries; i++) {
            entries.add(EntryTable.read(table, i));
        }
        return new Trailer(footer.sequence, entries);
    }
}
