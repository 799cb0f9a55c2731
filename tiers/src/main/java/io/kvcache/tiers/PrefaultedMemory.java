package io.kvcache.tiers;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.tiers.memory.BackgroundPrefaulter;
import io.kvcache.tiers.memory.PagePrefaulter;
import java.lang.foreign.MemorySegment;

/// Memory whose pages a thread touches in the background, so that the first requests need not.
///
/// @param toucher stopped before the memory is closed
record PrefaultedMemory(HostMemory memory, BackgroundPrefaulter toucher) implements HostMemory {

    private static final long STEP_BYTES = 8L << 20;

    static HostMemorySource inBackground(HostMemorySource source) {
        return (purpose, bytes) -> {
            HostMemory memory = source.reserve(purpose, bytes);
            return new PrefaultedMemory(
                    memory, BackgroundPrefaulter.start(new PagePrefaulter(memory.segment()), purpose));
        };
    }

    /// Memory that is touched before anybody gets it.
    static HostMemorySource atStart(HostMemorySource source) {
        return (purpose, bytes) -> {
            HostMemory memory = source.reserve(purpose, bytes);
            PagePrefaulter toucher = new PagePrefaulter(memory.segment());
            while (toucher.prefaultNext(STEP_BYTES) > 0) {}
            return memory;
        };
    }

    @Override
    public MemorySegment segment() {
        return memory.segment();
    }

    @Override
    public String describe() {
        return memory.describe();
    }

    @Override
    public void close() {
        toucher.close();
        memory.close();
    }
}
