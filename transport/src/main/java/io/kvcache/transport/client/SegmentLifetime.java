package io.kvcache.transport.client;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Lifetime of the segments that a caller uses. In a checked cache they throw afterwards, which costs some ten
/// microseconds a table.
final class SegmentLifetime {

    private final @Nullable Arena arena;

    SegmentLifetime(boolean checked) {
        arena = checked ? Arena.ofShared() : null;
    }

    /// Returns the same memory, with this lifetime.
    @SuppressWarnings("restricted") // address and length stay as they are
    MemorySegment confine(MemorySegment slot) {
        return arena == null ? slot : slot.reinterpret(arena, null);
    }

    void close() {
        if (arena != null) {
            arena.close();
        }
    }
}
