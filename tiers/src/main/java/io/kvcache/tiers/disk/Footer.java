package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryTable.INT32;
import static io.kvcache.tiers.disk.EntryTable.INT64;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// The last page of a region: that it is closed and where its table lies, or that it is free.
///
/// ```
///  0  int64  magic                  8  int32  CRC32C of the footer   12  int32  entries, -1 of a free region
/// 16  life, 20 bytes               36  int32  page of the table      40  int32  CRC32C of the table
/// ```
///
/// @param life of a closed region its own; of a free region the last that had been given when it became free
/// @param entries of the table, or [#FREE]
/// @param tablePage where the table begins in the region
record Footer(Life life, int entries, int tablePage, int tableChecksum) {

    /// Instead of a number of entries.
    static final int FREE = -1;

    private static final long MAGIC = 0x3152_4c54_4356_4b4bL; // "KKVCTLR1", little-endian

    /// The footer of a region that holds nothing.
    static Footer free(Life last) {
        return new Footer(last, FREE, 0, 0);
    }

    boolean isFree() {
        return entries == FREE;
    }

    /// Bytes of the table, in whole pages.
    long tableBytes() {
        return (long) Trailer.tablePages(entries) * Geometry.PAGE_BYTES;
    }

    /// @param page exactly a page
    void write(MemorySegment page) {
        page.fill((byte) 0);
        page.set(INT64, 0, MAGIC);
        page.set(INT32, 12, entries);
        life.write(page);
        page.set(INT32, 36, tablePage);
        page.set(INT32, 40, tableChecksum);
        Seal.close(page);
    }

    /// Reads a footer, or answers null when the page is none, or damaged.
    static @Nullable Footer read(MemorySegment page, int regionPages) {
        if (page.get(INT64, 0) != MAGIC || !Seal.holds(page)) {
            return null;
        }
        Footer footer = new Footer(Life.read(page), page.get(INT32, 12), page.get(INT32, 36), page.get(INT32, 40));
        boolean fits = footer.entries >= 0
                && footer.tablePage >= 0
                && footer.tablePage + (long) Trailer.pages(footer.entries) == regionPages;
        return fits || footer.isFree() ? footer : null;
    }
}
