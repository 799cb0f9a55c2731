package io.kvcache.transport.client;

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

/// A view of an object that a lease keeps on the server. Its segments lie in one buffer of this process, or in the
/// server's mapped memory, and end with the view.
///
/// **Threads.** Any; closing it beside a use of it is the caller's mistake, which checked segments tell.
final class LeasedObjectView implements ObjectView {

    private final RemoteContext client;
    private final RemoteSession session;
    private final long lease;
    private final long bytes;
    private final Contents contents;
    private final SegmentLifetime scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// Memory that the view owns.
    ///
    /// @param pieces of the object, in order
    /// @param buffer that has them, or null when the server's memory has
    /// @param mapped the object's place in the server's memory, or null
    private record Contents(
            List<MemorySegment> pieces,
            int checksum,
            ReceiveBuffers.@Nullable PooledBuffer buffer,
            @Nullable MappedRecord mapped) {

        void release() {
            if (buffer != null) {
                buffer.free();
            }
            if (mapped != null) {
                mapped.store.release();
            }
        }
    }

    /// A record in the server's memory, whose mapping is in use.
    private record MappedRecord(SharedStore store, long handle) {}

    private LeasedObjectView(
            RemoteContext client, RemoteSession session, ObjectReceiver.FoundObject found, Contents contents) {
        this.client = client;
        this.session = session;
        this.contents = contents;
        lease = found.lease();
        bytes = found.bytes();
        scope = new SegmentLifetime(client.options().checked());
        client.openHandles().incrementAndGet();
    }

    /// Opens a view of an object that has arrived in this process's memory, in one piece.
    static LeasedObjectView received(
            RemoteContext client,
            RemoteSession session,
            ObjectReceiver.FoundObject found,
            ReceiveBuffers.PooledBuffer buffer,
            int checksum) {
        List<MemorySegment> pieces = List.of(buffer.segment(found.bytes()));
        return new LeasedObjectView(client, session, found, new Contents(pieces, checksum, buffer, null));
    }

    /// Opens a view of an object in the server's mapped memory; null if the object must be read.
    static @Nullable LeasedObjectView mapped(
            RemoteContext client, RemoteSession session, ObjectReceiver.FoundObject found) {
        SharedStore store = session.sharedStore();
        ObjectExtents places = found.places();
        if (places == null || store == null || !store.retain()) {
            return null;
        }
        List<MemorySegment> pieces = places.resolve(store, found.bytes());
        if (pieces == null) {
            store.release();
            return null;
        }
        client.counters().mapped.increment();
        MappedRecord mapped = new MappedRecord(store, places.handle());
        return new LeasedObjectView(client, session, found, new Contents(pieces, places.checksum(), null, mapped));
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the view is closed");
        }
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public int checksum() {
        requireOpen();
        return contents.checksum;
    }

    /// @return always [io.kvcache.core.tree.RecordHandle#MISS]: the record is in the server
    @Override
    public long handle() {
        requireOpen();
        return RecordHandle.MISS;
    }

    /// @return always true for bytes in this process's memory
    @Override
    public boolean isValid() {
        MappedRecord mapped = contents.mapped;
        return mapped == null || (!closed.get() && mapped.store.isCurrent(mapped.handle));
    }

    @Override
    public void visit(long offset, long bytes, SegmentVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        long begin = 0;
        for (MemorySegment piece : contents.pieces) {
            long from = Math.max(offset, begin) - begin;
            long to = Math.min(offset + bytes, begin + piece.byteSize()) - begin;
            if (from < to) {
                each.visitSegment(scope.confine(piece).asReadOnly(), from, to - from);
            }
            begin += piece.byteSize();
        }
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        long begin = 0;
        for (MemorySegment piece : contents.pieces) {
            long from = Math.max(offset, begin);
            long to = Math.min(offset + bytes, begin + piece.byteSize());
            if (from < to) {
                MemorySegment.copy(piece, from - begin, target, from - offset, to - from);
            }
            begin += piece.byteSize();
        }
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            scope.close();
            contents.release();
        } finally {
            client.openHandles().decrementAndGet();
            session.release(lease);
        }
    }

    /// Place of an object in the server's memory, as the server reported it.
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

        /// Returns the memory of the object; null if it does not lie in the slots, or has a wrong length.
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
