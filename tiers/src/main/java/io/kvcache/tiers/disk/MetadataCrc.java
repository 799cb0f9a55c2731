package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32C;

/// Seals a span of metadata with a CRC32C over all of it but the checksum itself.
final class MetadataCrc {

    /// Offset of the checksum in every kind of page.
    static final long OFFSET = 8;

    private MetadataCrc() {}

    /// CRC32C of spans, one after another.
    static int of(MemorySegment... spans) {
        CRC32C crc = new CRC32C();
        for (MemorySegment span : spans) {
            crc.update(span.asByteBuffer());
        }
        return (int) crc.getValue();
    }

    static void write(MemorySegment span) {
        span.set(INT32, OFFSET, compute(span));
    }

    static boolean matches(MemorySegment span) {
        return span.get(INT32, OFFSET) == compute(span);
    }

    /// Returns whether nothing was ever written there.
    static boolean isBlank(MemorySegment span) {
        long last = span.byteSize() - 1;
        return span.get(JAVA_BYTE, last) == 0 && span.asSlice(0, last).mismatch(span.asSlice(1)) < 0;
    }

    private static int compute(MemorySegment span) {
        return of(span.asSlice(0, OFFSET), span.asSlice(OFFSET + Integer.BYTES));
    }
}
