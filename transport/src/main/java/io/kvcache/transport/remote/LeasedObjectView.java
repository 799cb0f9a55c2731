package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.SegmentVisitor;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

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

    /// An object that has arrived in this process's memory, in one piece.
    static final class ReceivedObjectView extends LeasedObjectView {

        private final ReceiveBuffers.PooledBuffer pooledBuffer;
        private final int checksum;

        /// What the view owns.
        record ReceivedContents(long lease, ReceiveBuffers.PooledBuffer pooledBuffer, long bytes, int checksum) {}

        ReceivedObjectView(
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

    /// An object where it lies in the server's memory, which keeps it there for as long as the lease lasts.
    static final class MappedObjectView extends LeasedObjectView {

        private final MappedContents mappedContents;

        /// What the view owns: a use of the mapped memory.
        private record MappedContents(SharedStore store, ObjectExtents places, List<MemorySegment> pieces) {}

        private MappedObjectView(
                RemoteCacheContext remoteCacheContext,
                RemoteSession remoteSession,
                ObjectReceiver.FoundObject foundObject,
                MappedContents mappedContents) {
            super(remoteCacheContext, remoteSession, foundObject.lease(), foundObject.bytes());
            this.mappedContents = mappedContents;
        }

        /// A view of what was found; null when it has to be read.
        static @Nullable ObjectView of(
                RemoteCacheContext remoteCacheContext,
                RemoteSession remoteSession,
                ObjectReceiver.FoundObject foundObject) {
            SharedStore store = remoteSession.sharedStore();
            ObjectExtents places = foundObject.places();
            if (places == null || store == null || !store.retain()) {
                return null;
            }
            List<MemorySegment> pieces = places.resolve(store, foundObject.bytes());
            if (pieces == null) {
                store.release();
                return null;
            }
            remoteCacheContext.counters().mapped.increment();
            return new MappedObjectView(
                    remoteCacheContext, remoteSession, foundObject, new MappedContents(store, places, pieces));
        }

        @Override
        public void visit(long offset, long bytes, SegmentVisitor each) {
            requireOpen();
            Objects.checkFromIndexSize(offset, bytes, bytes());
            long begin = 0;
            for (MemorySegment piece : mappedContents.pieces) {
                long from = Math.max(offset, begin) - begin;
                long to = Math.min(offset + bytes, begin + piece.byteSize()) - begin;
                if (from < to) {
                    each.visitSegment(scope().confine(piece).asReadOnly(), from, to - from);
                }
                begin += piece.byteSize();
            }
        }

        @Override
        public int checksum() {
            requireOpen();
            return mappedContents.places.checksum();
        }

        @Override
        public boolean isValid() {
            return isOpen() && mappedContents.store.isCurrent(mappedContents.places.handle());
        }

        @Override
        public void copyTo(long offset, long bytes, MemorySegment target) {
            requireOpen();
            Objects.checkFromIndexSize(0, bytes, target.byteSize());
            visit(offset, bytes, new SegmentVisitor() {
                private long at;

                @Override
                public void visitSegment(MemorySegment memory, long from, long length) {
                    MemorySegment.copy(memory, from, target, at, length);
                    at += length;
                }
            });
        }

        @Override
        void releaseMemory() {
            mappedContents.store.release();
        }
    }

    /// Where an object lies in the server's memory, as it was told.
    ///
    /// @param extents in order, of the slots
    record ObjectExtents(int checksum, long handle, List<Extent> extents) {

        /// @param offset in the slots
        record Extent(long offset, long bytes) {}

        /// Reads what follows `sent` in the reply to GET_OBJECT; null when nothing does.
        static @Nullable ObjectExtents read(BodyReader body) throws ProtocolException {
            if (!body.hasRemaining()) {
                return null;
            }
            int checksum = body.skip(3).i32("checksum");
            long handle = body.i64("handle");
            int count = body.count("pieces");
            body.skip(Integer.BYTES);
            List<Extent> spans = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                spans.add(new Extent(body.i64("offset"), body.i64("bytes")));
            }
            return new ObjectExtents(checksum, handle, List.copyOf(spans));
        }

        /// The memory of all of it; null when it does not lie in the slots, or is not as long as it should be.
        @Nullable
        List<MemorySegment> resolve(SharedStore store, long bytes) {
            List<MemorySegment> pieces = new ArrayList<>();
            long left = bytes;
            for (Extent extent : extents) {
                MemorySegment piece = store.span(extent.offset, extent.bytes);
                if (piece == null) {
                    return null;
                }
                pieces.add(piece);
                left -= extent.bytes;
            }
            return left == 0 && store.isValidHandle(handle) ? List.copyOf(pieces) : null;
        }
    }
}
