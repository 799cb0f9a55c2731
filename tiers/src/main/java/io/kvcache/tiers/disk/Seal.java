package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryTable.INT32;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

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

    /// Whether nothing was ever written there.
    static boolean blank(MemorySegment span) {
        long last = span.byteSize() - 1;
        return span.get(JAVA_BYTE, last) == 0 && span.asSlice(0, last).mismatch(span.asSlice(1)) < 0;
    }

    private static int sum(MemorySegment span) {
        return Checksum.of(span.asSlice(0, OFFSET), span.asSlice(OFFSET + Integer.BYTES));
    }
}
