package io.kvcache.transport.remote;

import io.kvcache.transport.shm.StagingMemory;
import io.kvcache.transport.wire.StagedRange;
import java.lang.foreign.MemorySegment;

/// A place that the server can read.
record StagedBuffer(StagingMemory.Allocation allocation) implements PutBuffer {

    @Override
    public MemorySegment segment(long bytes) {
        return allocation.segment(bytes);
    }

    /// What is said of bytes that lie there.
    StagedRange toRange(long bytes, int checksum) {
        return new StagedRange(allocation.offset(), bytes, checksum);
    }

    @Override
    public void free() {
        allocation.free();
    }
}
