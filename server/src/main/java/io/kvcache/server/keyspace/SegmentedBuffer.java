package io.kvcache.server.keyspace;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Objects;

/// Memory in pieces, addressed as if it were one.
record SegmentedBuffer(List<MemorySegment> segments, long bytes) {

    static SegmentedBuffer of(List<MemorySegment> pieces) {
        long bytes = 0;
        for (MemorySegment piece : pieces) {
            bytes += piece.byteSize();
        }
        return new SegmentedBuffer(pieces, bytes);
    }

    /// Fills the range from `offset` on with `source`.
    void write(long offset, byte[] source) {
        Objects.checkFromIndexSize(offset, source.length, bytes);
        long start = 0;
        for (MemorySegment piece : segments) {
            long from = Math.max(offset, start);
            long to = Math.min(offset + source.length, start + piece.byteSize());
            if (from < to) {
                int at = (int) (from - offset);
                MemorySegment.copy(source, at, piece, ValueLayout.JAVA_BYTE, from - start, (int) (to - from));
            }
            start += piece.byteSize();
        }
    }
}
