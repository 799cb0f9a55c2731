package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryTable.INT32;

import java.lang.foreign.MemorySegment;

/// Seals a span of metadata with a CRC32C over all of it but the checksum itself.
final class Seal {

    /// Where the checksum lies in every kind of page.
    static final long OFFSET = 8;

    private Seal() {}

    static void close(MemorySegment span) {
        span.set(INT32, OFFSET, sum(span));
    }

    static boolean holds(MemorySegment span) {
        return span.get(INT32, OFFSET) == sum(span);
    }

    private static int sum(MemorySegment span) {
        return Checksum.of(span.asSlice(0, OFFSET), span.asSlice(OFFSET + Integer.BYTES));
    }
}
