package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.tree.RecordHandle;
import java.util.concurrent.atomic.AtomicBoolean;

/// An object that a lease keeps on the server, and segments that end with the view.
///
/// **Threads.** Any; closing it beside a use of it is the caller's mistake, which checked segments tell.
abstract class LeasedObjectView implements ObjectView {

    private final RemoteCacheContext remoteCacheContext;
    private final RemoteSession remoteSession;
    private final long lease;
    private final long bytes;
    private final SegmentLifetime scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// @param lease given back at the end
    LeasedObjectView(RemoteCacheContext remoteCacheContext, RemoteSession remoteSession, long lease, long bytes) {
        this.remoteCacheContext = remoteCacheContext;
        this.remoteSession = remoteSession;
        this.lease = lease;
        this.bytes = bytes;
        scope = new SegmentLifetime(remoteCacheContext.options().checked());
        remoteCacheContext.openHandles().incrementAndGet();
        remoteSession.users().add();
    }

    @Override
    public final long bytes() {
        return bytes;
    }

    /// What segments are limited to.
    final SegmentLifetime scope() {
        return scope;
    }

    final boolean isOpen() {
        return !closed.get();
    }

    final void requireOpen() {
        if (!isOpen()) {
            throw new IllegalStateException("the view is closed");
        }
    }

    /// Lets go of what the bytes lie in. Once, after the segments have ended.
    abstract void releaseMemory();

    /// @return always [io.kvcache.core.tree.RecordHandle#MISS]: the record is in the server
    @Override
    public final long handle() {
        requireOpen();
        return RecordHandle.MISS;
    }

    @Override
    public final void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            scope.close();
            releaseMemory();
        } finally {
            remoteCacheContext.openHandles().decrementAndGet();
            remoteSession.release(lease);
            remoteSession.users().leave();
        }
    }
}
