package io.kvcache.transport.remote;

import io.kvcache.core.SegmentVisitor;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// An object that has arrived in this process's memory, in one piece.
final class RemoteObjectView extends LeasedObjectView {

    private final ReceiveBuffers.PooledBuffer pooledBuffer;
    private final int checksum;

    /// What the view owns.
    record ReceivedContents(long lease, ReceiveBuffers.PooledBuffer pooledBuffer, long bytes, int checksum) {}

    RemoteObjectView(
            RemoteCacheContext remoteCacheContext, RemoteSession remoteSession, ReceivedContents receivedContents) {
        super(remoteCacheContext, remoteSession, receivedContents.lease, receivedContents.bytes);
        pooledBuffer = receivedContents.pooledBuffer;
        checksum = receivedContents.checksum;
    }

    @Override
    public void visit(long offset, long bytes, SegmentVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        if (bytes > 0) {
            each.visitSegment(scope().confine(pooledBuffer.segment(bytes())).asReadOnly(), offset, bytes);
        }
    }

    @Override
    public int checksum() {
        requireOpen();
        return checksum;
    }

    /// @return always true: the bytes lie in this process's memory
    @Override
    public boolean isValid() {
        return true;
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        MemorySegment.copy(pooledBuffer.segment(bytes()), offset, target, 0, bytes);
    }

    @Override
    void releaseMemory() {
        pooledBuffer.free();
    }
}
