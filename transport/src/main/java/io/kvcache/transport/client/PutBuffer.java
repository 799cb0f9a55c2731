package io.kvcache.transport.client;

import io.kvcache.transport.shm.StagingMemory;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import java.lang.foreign.MemorySegment;

/// Memory of the client for bytes that it will put.
///
/// **Ownership.** The caller that takes one frees it, once, and must not touch it afterwards.
sealed interface PutBuffer permits ReceiveBuffers.PooledBuffer, PutBuffer.StagedBuffer {

    /// Returns the first bytes of it.
    MemorySegment segment(long bytes);

    /// Gives it back.
    void free();

    /// A place that the server can read.
    record StagedBuffer(StagingMemory.Allocation allocation) implements PutBuffer {

        @Override
        public MemorySegment segment(long bytes) {
            return allocation.segment(bytes);
        }

        /// Describes bytes in this buffer to the server.
        StagedRange toRange(long bytes, int checksum) {
            return new StagedRange(allocation.offset(), bytes, checksum);
        }

        @Override
        public void free() {
            allocation.free();
        }
    }
}
