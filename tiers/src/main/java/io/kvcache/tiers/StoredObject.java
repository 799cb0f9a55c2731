package io.kvcache.tiers;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.store.HostStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/// How an object lies in its slots: the value, then the key.
///
/// The key is kept so that a look-up can be sure of what it found, and so that keys can be listed.
///
/// @param record pinned or reserved by the owner of this view
/// @param valueBytes size of the value
record StoredObject(HostStore store, int record, long valueBytes) {

    /// Stands for a checksum that was not computed yet. Some bytes do have this sum: they are summed whenever
    /// asked.
    static final int NO_CHECKSUM = 0;

    /// Shows where a range of value and key lies.
    void visit(long offset, long bytes, SegmentVisitor each) {
        store.visit(record, offset, bytes, each);
    }

    /// The value's memory, in order; a list of the caller's own.
    List<MemorySegment> valueSegments() {
        List<MemorySegment> pieces = new ArrayList<>(1);
        visit(0, valueBytes, (memory, from, length) -> pieces.add(memory.asSlice(from, length)));
        return pieces;
    }

    /// Size of value and key together.
    long bytes() {
        return store.records().bytes(record);
    }

    /// The checksum over value and key, computed now if it was not before. Several may do so at once; all find the
    /// same.
    int checksum() {
        int known = store.records().checksum(record);
        if (known != NO_CHECKSUM) {
            return known;
        }
        ChunkedCrc crc = new ChunkedCrc();
        visit(0, bytes(), (memory, from, length) -> crc.update(memory.asSlice(from, length)));
        int sum = crc.value();
        store.records().checksum(record, sum);
        return sum;
    }

    void writeKey(byte[] key) {
        store.visit(record, valueBytes, key.length, new SegmentVisitor() {
            private int at;

            @Override
            public void visitSegment(MemorySegment memory, long to, long bytes) {
                MemorySegment.copy(key, at, memory, ValueLayout.JAVA_BYTE, to, (int) bytes);
                at += (int) bytes;
            }
        });
    }

    boolean hasKey(byte[] wanted) {
        if (keyBytes() != wanted.length) {
            return false;
        }
        Comparison same = new Comparison(wanted);
        store.visit(record, valueBytes, wanted.length, same);
        return same.equal;
    }

    /// Of a key with what lies in a slot, eight bytes at a time: keys are short, and a segment over
    /// the array would have to be made for each.
    private static final class Comparison implements SegmentVisitor {
        private static final VarHandle LONG =
                MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

        private final byte[] wanted;
        private int at;
        private boolean equal = true;

        Comparison(byte[] wanted) {
            this.wanted = wanted;
        }

        @Override
        public void visitSegment(MemorySegment memory, long from, long bytes) {
            long end = from + bytes;
            long to = from;
            for (; equal && to + Long.BYTES <= end; to += Long.BYTES, at += Long.BYTES) {
                equal = memory.get(ValueLayout.JAVA_LONG_UNALIGNED, to) == (long) LONG.get(wanted, at);
            }
            for (; equal && to < end; to++, at++) {
                equal = memory.get(ValueLayout.JAVA_BYTE, to) == wanted[at];
            }
        }
    }

    /// Fills the value from `source`, which has its size.
    void copyFrom(MemorySegment source) {
        store.visit(record, 0, valueBytes, new SegmentVisitor() {
            private long at;

            @Override
            public void visitSegment(MemorySegment memory, long to, long length) {
                MemorySegment.copy(source, at, memory, to, length);
                at += length;
            }
        });
    }

    /// Copies a range of the value to the start of `target`.
    void copyTo(long offset, long bytes, MemorySegment target) {
        store.visit(record, offset, bytes, new SegmentVisitor() {
            private long at;

            @Override
            public void visitSegment(MemorySegment memory, long from, long length) {
                MemorySegment.copy(memory, from, target, at, length);
                at += length;
            }
        });
    }

    private long keyBytes() {
        return bytes() - valueBytes;
    }
}
