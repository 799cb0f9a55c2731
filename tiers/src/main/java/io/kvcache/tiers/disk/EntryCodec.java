package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/// Entries as bytes: 64 each, little-endian, in the order of [DiskEntry]'s components.
///
/// ```
///  0  int64 key high      8  int64 key low      16  int64 parent high   24  int64 parent low
/// 32  int32 identity     36  int32 depth        40  int32 page          44  int32 bytes
/// 48  int32 checksum     52  int32 0            56  int64 engine hash
/// ```
final class EntryCodec {

    static final int ENTRY_BYTES = 64;

    static final int ENTRIES_PER_PAGE = DiskGeometry.PAGE_BYTES / ENTRY_BYTES;

    static final ValueLayout.OfLong INT64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfInt INT32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private EntryCodec() {}

    static void write(MemorySegment table, int index, DiskEntry entry) {
        long at = (long) index * ENTRY_BYTES;
        table.set(INT64, at, entry.keyHi());
        table.set(INT64, at + 8, entry.keyLo());
        table.set(INT64, at + 16, entry.parentHi());
        table.set(INT64, at + 24, entry.parentLo());
        table.set(INT32, at + 32, entry.identity());
        table.set(INT32, at + 36, entry.depth());
        table.set(INT32, at + 40, entry.page());
        table.set(INT32, at + 44, entry.bytes());
        table.set(INT32, at + 48, entry.checksum());
        table.set(INT32, at + 52, 0);
        table.set(INT64, at + 56, entry.engineHash());
    }

    static DiskEntry read(MemorySegment table, int index) {
        long at = (long) index * ENTRY_BYTES;
        return new DiskEntry(
                table.get(INT64, at),
                table.get(INT64, at + 8),
                table.get(INT64, at + 16),
                table.get(INT64, at + 24),
                table.get(INT32, at + 32),
                table.get(INT32, at + 36),
                table.get(INT32, at + 40),
                table.get(INT32, at + 44),
                table.get(INT32, at + 48),
                table.get(INT64, at + 56));
    }
}
