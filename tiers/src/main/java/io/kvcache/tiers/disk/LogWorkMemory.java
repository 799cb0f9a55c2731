package io.kvcache.tiers.disk;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The memory that a log works with, beside that of the blocks. Owned by the log's thread.
public final class LogWorkMemory implements AutoCloseable {

    private final HostMemorySource source;
    private final List<HostMemory> allocations = new ArrayList<>();

    public LogWorkMemory(HostMemorySource source) {
        this.source = source;
    }

    /// So many bytes, until this is closed.
    MemorySegment allocate(long bytes) {
        HostMemory memory = source.reserve("disk-log", bytes);
        allocations.add(memory);
        return memory.segment();
    }

    @Override
    public void close() {
        allocations.forEach(HostMemory::close);
        allocations.clear();
    }
}
