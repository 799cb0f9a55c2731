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
/// 48  int64  life that is over
/// ```
///
/// Footers also say which lives of the whole device are over, so that a tombstone never goes before what it
/// buries. Regions are reclaimed in the order of their lives, but their footers need not become durable in
/// it: one waits for a reader, one cannot be written at all. With the footer that ends the tombstone's life
/// goes the word that all earlier ones have ended.
///
/// @param life of a closed region its own; of a free region the last that had been given when it became free
/// @param entries of the table, or [#FREE]
/// @param tablePage where the table begins in the region
/// @param over number of a life that had ended when this was written, with all earlier ones of the device
record Footer(Life life, int entries, int tablePage, int tableChecksum, long over) {

    /// Instead of a number of entries.
    static final int FREE = -1;

    private static final long MAGIC = 0x3152_4c54_4356_4b4bL; // "KKVCTLR1", little-endian

    /// The footer of a region that holds nothing.
    static Footer free(Life last, long over) {
        return new Footer(last, FREE, 0, 0, over);
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
        page.set(INT64, 48, over);
        Seal.close(page);
    }

    /// Reads a footer, or answers null when the page is none, or damaged.
    static @Nullable Footer read(MemorySegment page, int regionPages) {
        if (page.get(INT64, 0) != MAGIC || !Seal.holds(page)) {
            return null;
        }
        Footer footer = new Footer(
                Life.read(page), page.get(INT32, 12), page.get(INT32, 36), page.get(INT32, 40), page.get(INT64, 48));
        boolean fits = footer.entries >= 0
                && footer.entries <= Trailer.maxEntries(regionPages)
                && footer.tablePage >= 0
                && footer.tablePage + (long) Trailer.pages(footer.entries) == regionPages;
        return fits || footer.isFree() ? footer : null;
    }
}
