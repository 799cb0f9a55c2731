package io.kvcache.tiers;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// How an object lies in its slots: the value, then the key.
///
/// The key is kept so that a look-up can be sure of what it found, and so that keys can be listed.
///
/// @param pieces the slots' memory in order, cut to value and key together
/// @param valueBytes size of the value
record StoredObject(List<MemorySegment> pieces, long valueBytes) {

    /// The value's memory, in order.
    List<MemorySegment> value() {
        return range(0, valueBytes);
    }

    /// The key's memory, in order.
    List<MemorySegment> key() {
        return range(valueBytes, totalBytes() - valueBytes);
    }

    void writeKey(byte[] key) {
        int at = 0;
        for (MemorySegment piece : key()) {
            int length = (int) piece.byteSize();
            MemorySegment.copy(MemorySegment.ofArray(key), at, piece, 0, length);
            at += length;
        }
    }

    boolean hasKey(byte[] wanted) {
        byte[] key = new byte[(int) (totalBytes() - valueBytes)];
        copyTo(valueBytes, key.length, MemorySegment.ofArray(key));
        return Arrays.equals(key, wanted);
    }

    /// Copies a range to the start of `target`.
    void copyTo(long offset, long bytes, MemorySegment target) {
        long at = 0;
        for (MemorySegment part : range(offset, bytes)) {
            MemorySegment.copy(part, 0, target, at, part.byteSize());
            at += part.byteSize();
        }
    }

    private List<MemorySegment> range(long offset, long bytes) {
        List<MemorySegment> parts = new ArrayList<>();
        long start = 0;
        for (MemorySegment piece : pieces) {
            long from = Math.max(offset, start);
            long to = Math.min(offset + bytes, start + piece.byteSize());
            if (from < to) {
                parts.add(piece.asSlice(from - start, to - from));
            }
            start += piece.byteSize();
        }
        return parts;
    }

    private long totalBytes() {
        return pieces.stream().mapToLong(MemorySegment::byteSize).sum();
    }
}
