package io.kvcache.core.memory;

import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Host memory out of a Java arena: the double of what tiers maps.
public final class ArenaMemory implements HostMemory {

    private final Arena arena = Arena.ofShared();
    private final MemorySegment segment;

    private ArenaMemory(long bytes) {
        segment = arena.allocate(bytes, Pages.BYTES);
    }

    public static HostMemorySource source() {
        return (purpose, bytes) -> new ArenaMemory(bytes);
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    @Override
    public String describe() {
        return "arena";
    }

    @Override
    public void close() {
        arena.close();
    }
}
