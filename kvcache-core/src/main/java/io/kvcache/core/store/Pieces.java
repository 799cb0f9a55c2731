package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The memory of an object's slots, in order, cut to the object's size.
final class Pieces {

    private Pieces() {}

    static List<MemorySegment> of(SlabPool slabs, int firstPage, long bytes) {
        List<MemorySegment> pieces = new ArrayList<>();
        long left = bytes;
        for (int page = firstPage; page != SlabPool.NONE; page = slabs.next(page)) {
            long length = Math.min(left, slabs.slotBytes(page));
            pieces.add(slabs.segment(page, length));
            left -= length;
        }
        assert left == 0 : "object of " + bytes + " bytes lacks " + left;
        return pieces;
    }
}
