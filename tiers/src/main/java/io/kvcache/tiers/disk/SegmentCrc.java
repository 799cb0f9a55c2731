package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32C;

/// CRC32C of a span.
final class SegmentCrc {

    private SegmentCrc() {}

    static int of(MemorySegment... spans) {
        CRC32C crc = new CRC32C();
        for (MemorySegment span : spans) {
            crc.update(span.asByteBuffer());
        }
        return (int) crc.getValue();
    }
}
