package io.kvcache.tiers;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// The time during which somebody may use the segments they were given.
///
/// In a checked store the segments throw once the scope is closed, instead of showing the next owner's bytes.
/// That costs ten to twenty microseconds a scope, so an unchecked one hands the slot's memory out as it is.
final class SegmentScope implements AutoCloseable {

    private static final SegmentScope UNCHECKED = new SegmentScope(null);

    private final @Nullable Arena arena;

    private SegmentScope(@Nullable Arena arena) {
        this.arena = arena;
    }

    static SegmentScope open(boolean checked) {
        return checked ? new SegmentScope(Arena.ofShared()) : UNCHECKED;
    }

    /// The same memory, for as long as this scope.
    @SuppressWarnings("restricted") // the span and its length stay what the slab pool has bounded
    MemorySegment bind(MemorySegment slot) {
        return arena == null ? slot : slot.reinterpret(arena, null);
    }

    /// @throws IllegalStateException when another thread is inside an access at this moment
    @Override
    public void close() {
        if (arena != null) {
            arena.close();
        }
    }
}
