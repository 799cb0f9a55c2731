package io.kvcache.server.keyspace;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/// Memory in pieces, addressed as if it were one.
record Span(List<MemorySegment> pieces, long bytes) {

    static Span of(List<MemorySegment> pieces) {
        long bytes = 0;
        for (MemorySegment piece : pieces) {
            bytes += piece.byteSize();
        }
        return new Span(pieces, bytes);
    }

    /// The pieces of a range, in order.
    Span slice(long offset, long length) {
        Objects.checkFromIndexSize(offset, length, bytes);
        if (length == bytes) {
            return this;
        }
        List<MemorySegment> parts = new ArrayList<>(pieces.size());
        long start = 0;
        for (MemorySegment piece : pieces) {
            long from = Math.max(offset, start);
            long to = Math.min(offset + length, start + piece.byteSize());
            if (from < to) {
                parts.add(piece.asSlice(from - start, to - from));
            }
            start += piece.byteSize();
        }
        return new Span(parts, length);
    }

    /// Fills all of it from `source`, which has as many bytes.
    void copyFrom(byte[] source) {
        MemorySegment from = MemorySegment.ofArray(source);
        long at = 0;
        for (MemorySegment piece : pieces) {
            MemorySegment.copy(from, at, piece, 0, piece.byteSize());
            at += piece.byteSize();
        }
    }
}
