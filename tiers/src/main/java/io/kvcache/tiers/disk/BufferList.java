package io.kvcache.tiers.disk;

import io.kvcache.core.memory.ChunkedCrc;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The memory of one block or object: one slot, or the several slots of an object in order.
///
/// @param spans native memory at aligned addresses, whole pages, together the pages that the bytes take
/// @param bytes of the block or object, 0 of a tombstone; the rest of the last page is unused
record BufferList(List<MemorySegment> spans, int bytes) {

    BufferList {
        spans = List.copyOf(spans);
        long sum = 0;
        for (MemorySegment span : spans) {
            if (!span.isNative()
                    || span.address() % DiskGeometry.PAGE_BYTES != 0
                    || span.byteSize() % DiskGeometry.PAGE_BYTES != 0
                    || span.byteSize() == 0) {
                throw new IllegalArgumentException("a piece must be native memory in whole pages of "
                        + DiskGeometry.PAGE_BYTES + " bytes at an aligned address, is " + span);
            }
            sum += span.byteSize();
        }
        long pages = (bytes + (long) DiskGeometry.PAGE_BYTES - 1) / DiskGeometry.PAGE_BYTES;
        if (bytes < 0 || sum != pages * DiskGeometry.PAGE_BYTES) {
            throw new IllegalArgumentException(
                    "pieces of %s bytes for %s bytes, which take %s pages".formatted(sum, bytes, pages));
        }
    }

    /// The spans of the last pages.
    List<MemorySegment> lastPages(int pages) {
        List<MemorySegment> last = new ArrayList<>(spans.size());
        long left = (long) pages * DiskGeometry.PAGE_BYTES;
        for (MemorySegment span : spans.reversed()) {
            long taken = Math.min(left, span.byteSize());
            if (taken > 0) {
                last.addFirst(span.asSlice(span.byteSize() - taken));
                left -= taken;
            }
        }
        assert left == 0 : pages + " pages of " + this;
        return last;
    }

    /// These bytes behind a head, as they are stored.
    BufferList behind(MemorySegment head) {
        List<MemorySegment> stored = new ArrayList<>(spans.size() + 1);
        stored.add(head);
        stored.addAll(spans);
        return new BufferList(
                stored,
                Math.toIntExact(
                        stored.stream().mapToLong(MemorySegment::byteSize).sum()));
    }

    /// The stored bytes of an entry, in one piece.
    static BufferList stored(MemorySegment memory, DiskEntry entry) {
        return new BufferList(List.of(memory), entry.pages() * DiskGeometry.PAGE_BYTES);
    }

    /// The checksum of the bytes, as a record has it.
    int checksum() {
        ChunkedCrc crc = new ChunkedCrc();
        long left = bytes;
        for (MemorySegment span : spans) {
            long taken = Math.min(left, span.byteSize());
            crc.update(span.asSlice(0, taken));
            left -= taken;
        }
        return crc.value();
    }
}
