package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.IntPredicate;

/// A table whose blocks have a byte changed, those that a test chooses. The checksum is the right one.
final class CorruptingTable extends ForwardingBlockTable {

    private final IntPredicate isCorrupt;

    CorruptingTable(BlockTable table, IntPredicate isCorrupt) {
        super(table);
        this.isCorrupt = isCorrupt;
    }

    @Override
    public MemorySegment segment(int index) {
        MemorySegment right = delegate().segment(index);
        if (!isCorrupt.test(index)) {
            return right;
        }
        MemorySegment other = MemorySegment.ofArray(right.toArray(ValueLayout.JAVA_BYTE));
        long at = other.byteSize() / 2;
        other.set(ValueLayout.JAVA_BYTE, at, (byte) ~other.get(ValueLayout.JAVA_BYTE, at));
        return other;
    }
}
