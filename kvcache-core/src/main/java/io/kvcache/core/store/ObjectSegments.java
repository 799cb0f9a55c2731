package io.kvcache.core.store;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The memory of an object's slots, in order.
///
/// **Threads.** Under the store's lock, or for a record that the caller has pinned or reserved: the slots of such a
/// one do not change, nor do the slabs that they lie in.
final class ObjectSegments {

    private ObjectSegments() {}

    /// All of it, cut to the object's size.
    static List<MemorySegment> of(SlabPool slabs, int firstPage, long bytes) {
        List<MemorySegment> pieces = new ArrayList<>();
        visit(slabs, firstPage, 0, bytes, (memory, from, length) -> pieces.add(memory.asSlice(from, length)));
        return pieces;
    }

    /// Whether two objects of so many bytes are the same.
    static boolean contentEquals(SlabPool slabs, int firstPage, int otherPage, long bytes) {
        boolean[] same = {true};
        long[] at = {0};
        visit(slabs, firstPage, 0, bytes, (memory, from, length) -> {
            long[] own = {from};
            visit(slabs, otherPage, at[0], same[0] ? length : 0, (other, start, part) -> {
                same[0] &= MemorySegment.mismatch(memory, own[0], own[0] + part, other, start, start + part) < 0;
                own[0] += part;
            });
            at[0] += length;
        });
        return same[0];
    }

    /// The range of `bytes` from `offset` on.
    static void visit(SlabPool slabs, int firstPage, long offset, long bytes, SegmentVisitor each) {
        long skip = offset;
        long left = bytes;
        for (int page = firstPage; left > 0 && page != SlabPool.NONE; page = slabs.next(page)) {
            long slotBytes = slabs.slotBytes(page);
            if (skip < slotBytes) {
                long part = Math.min(left, slotBytes - skip);
                each.visitSegment(slabs.memory(), Pages.offset(page) + skip, part);
                left -= part;
                skip = 0;
            } else {
                skip -= slotBytes;
            }
        }
        assert left == 0 : "object of " + (offset + bytes) + " bytes lacks " + left;
    }
}
