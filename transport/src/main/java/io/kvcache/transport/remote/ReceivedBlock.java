package io.kvcache.transport.remote;

import java.lang.foreign.MemorySegment;

/// A block in memory of this process.
record ReceivedBlock(ReceiveBuffers.PooledBuffer pooledBuffer, long bytes, int checksum)
        implements RemoteBlockTable.Block {

    @Override
    public MemorySegment segment() {
        return pooledBuffer.segment(bytes);
    }

    @Override
    public boolean isValid() {
        return true;
    }

    @Override
    public void free() {
        pooledBuffer.free();
    }
}
