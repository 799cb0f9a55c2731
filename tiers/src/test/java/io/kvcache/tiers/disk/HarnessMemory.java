package io.kvcache.tiers.disk;

import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.tier.TierBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Memory of a [DiskLogHarness]: working memory of its logs, and slots for blocks, poisoned while they are free.
final class HarnessMemory {

    private static final byte POISON = (byte) 0xDD;
    private static final int SLOT_BYTES = 512 << 10;

    private final Arena arena;
    private final Map<Long, HostMemory> forLogs = new HashMap<>();
    private final Deque<MemorySegment> slots = new ArrayDeque<>();

    HarnessMemory(Arena arena) {
        this.arena = arena;
    }

    /// The same for every log that asks for so much.
    HostMemory forLog(long bytes) {
        return forLogs.computeIfAbsent(bytes, _ -> new ArenaSlice(arena.allocate(bytes, DiskGeometry.PAGE_BYTES)));
    }

    /// Memory that ends with its arena.
    private record ArenaSlice(MemorySegment segment) implements HostMemory {

        @Override
        public String describe() {
            return "arena";
        }

        @Override
        public void close() {}
    }

    MemorySegment acquire() {
        MemorySegment slot = slots.poll();
        return slot == null ? arena.allocate(SLOT_BYTES, DiskGeometry.PAGE_BYTES) : slot;
    }

    void release(MemorySegment slot) {
        // Enough for a block that is written or read after its end was told to be noticed.
        slot.asSlice(0, DiskGeometry.PAGE_BYTES).fill(POISON);
        slots.push(slot);
    }

    /// Returns a store's view of an entry; its namespace is number 0 there.
    static TierBlock block(DiskEntry entry) {
        return new TierBlock(
                entry.keyHi(),
                entry.keyLo(),
                entry.parentHi(),
                entry.parentLo(),
                0,
                entry.isObject(),
                entry.depth(),
                entry.bytes(),
                entry.checksum(),
                entry.engineHash());
    }

    /// One piece, or two for every third number of pages.
    static List<MemorySegment> split(MemorySegment slot, int pages) {
        long bytes = (long) pages * DiskGeometry.PAGE_BYTES;
        if (pages % 3 != 0) {
            return List.of(slot.asSlice(0, bytes));
        }
        long first = (long) pages / 3 * DiskGeometry.PAGE_BYTES;
        return List.of(slot.asSlice(0, first), slot.asSlice(first, bytes - first));
    }
}
