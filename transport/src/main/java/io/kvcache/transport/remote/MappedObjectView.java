package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.SegmentVisitor;
import io.kvcache.transport.shm.SharedStore;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// An object where it lies in the server's memory, which keeps it there for as long as the lease lasts.
final class MappedObjectView extends LeasedObjectView {

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
