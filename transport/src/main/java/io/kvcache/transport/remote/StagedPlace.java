package io.kvcache.transport.remote;

import io.kvcache.transport.shm.StagingMemory;
import io.kvcache.transport.wire.StagedBytes;
import java.lang.foreign.MemorySegment;

/// A place that the server can read.
record StagedPlace(StagingMemory.Span span) implements Place {

    @Override
    public MemorySegment segment(long bytes) {
        return span.segment(bytes);
    }

    /// What is said of bytes that lie there.
    StagedBytes told(long bytes, int checksum) {
        return new StagedBytes(span.offset(), bytes, checksum);
    }

    @Override
    public void free() {
        span.free();
    }
}
