package io.kvcache.transport.remote;

import io.kvcache.core.memory.ChunkedCrc;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Bytes of a caller where they can be sent from: where they lie when that is native memory, else in a slot
/// that they are copied to.
///
/// @param pooledBuffer null when none is needed
record SendBuffer(MemorySegment segment, ReceiveBuffers.@Nullable PooledBuffer pooledBuffer) implements AutoCloseable {

    /// For bytes like these, or null when there is no memory for a copy.
    static @Nullable SendBuffer of(MemorySegment source, RemoteCacheContext remoteCacheContext) {
        if (source.isNative()) {
            return new SendBuffer(source, null);
        }
        ReceiveBuffers.PooledBuffer pooledBuffer = remoteCacheContext.buffers().allocate(source.byteSize());
        if (pooledBuffer == null) {
            remoteCacheContext.counters().outOfMemory.increment();
            return null;
        }
        return new SendBuffer(pooledBuffer.segment(source.byteSize()), pooledBuffer);
    }

    /// Brings them there, and sums them.
    ChunkedCrc copyAndChecksum(MemorySegment source) {
        ChunkedCrc crc = new ChunkedCrc();
        if (pooledBuffer == null) {
            crc.update(source);
        } else {
            crc.copy(source, 0, segment);
        }
        return crc;
    }

    @Override
    public void close() {
        if (pooledBuffer != null) {
            pooledBuffer.free();
        }
    }
}
