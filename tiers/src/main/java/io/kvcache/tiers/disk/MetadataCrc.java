package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryCodec.INT32;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;

/// Seals a span of metadata with a CRC32C over all of it but the checksum itself.
final class MetadataCrc {

    /// Where the checksum lies in every kind of page.
    static final long OFFSET = 8;

    private MetadataCrc() {}

    static void write(MemorySegment span) {
        span.set(INT32, OFFSET, compute(span));
    }

    static boolean matches(MemorySegment span) {
        return span.get(INT32, OFFSET) == compute(span);
    }

    /// Whether nothing was ever written there.
    static boolean isBlank(MemorySegment span) {
        long last = span.byteSize() - 1;
        return span.get(JAVA_BYTE, last) == 0 && span.asSlice(0, last).mismatch(span.asSlice(1)) < 0;
    }

    private static int compute(MemorySegment span) {
        return SegmentCrc.of(span.asSlice(0, OFFSET), span.asSlice(OFFSET + Integer.BYTES));
    }
}
