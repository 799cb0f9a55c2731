package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Single pages for heads and footers on their way. Who finds none tries again in a later tick.
final class PagePool {

    /// More heads on their way than any disk makes use of.
    static final int PAGES = 64;

    private final Deque<MemorySegment> free = new ArrayDeque<>(PAGES);

    /// @param memory [#PAGES] pages
    PagePool(MemorySegment memory) {
        for (int i = 0; i < PAGES; i++) {
            free.add(memory.asSlice((long) i * DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES));
        }
    }

    @Nullable
    MemorySegment acquire() {
        return free.poll();
    }

    void release(MemorySegment page) {
        free.push(page);
        assert free.size() <= PAGES : "a page was given back twice";
    }
}
