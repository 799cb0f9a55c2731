package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.PieceVisitor;
import io.kvcache.transport.shm.SharedStore;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// An object where it lies in the server's memory, which keeps it there for as long as the lease lasts.
final class PlacedObjectView implements ObjectView {

    private final Wiring wiring;
    private final Attachment attachment;
    private final Held held;
    private final ViewScope scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// What the view owns: a lease, and a use of the mapped memory.
    private record Held(long lease, SharedStore store, ObjectPlaces places, List<MemorySegment> pieces, long bytes) {}

    private PlacedObjectView(Wiring wiring, Attachment attachment, Held held) {
        this.wiring = wiring;
        this.attachment = attachment;
        this.held = held;
        scope = new ViewScope(wiring.options().checked());
        wiring.open().incrementAndGet();
    }

    /// A view of what was found; null when it has to be read.
    static @Nullable ObjectView of(Wiring wiring, Attachment attachment, ObjectArrival.Found found) {
        SharedStore store = attachment.shared();
        ObjectPlaces places = found.places();
        if (places == null || store == null || !store.retain()) {
            return null;
        }
        List<MemorySegment> pieces = places.in(store, found.bytes());
        if (pieces == null) {
            store.release();
            return null;
        }
        wiring.counters().placed.increment();
        return new PlacedObjectView(wiring, attachment, new Held(found.lease(), store, places, pieces, found.bytes()));
    }

    @Override
    public long bytes() {
        return held.bytes;
    }

    @Override
    public void visit(long offset, long bytes, PieceVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, held.bytes);
        long begin = 0;
        for (MemorySegment piece : held.pieces) {
            long from = Math.max(offset, begin) - begin;
            long to = Math.min(offset + bytes, begin + piece.byteSize()) - begin;
            if (from < to) {
                each.piece(scope.limit(piece).asReadOnly(), from, to - from);
            }
            begin += piece.byteSize();
        }
    }

    @Override
    public int checksum() {
        requireOpen();
        return held.places.checksum();
    }

    @Override
    public boolean valid() {
        return !closed.get() && held.store.holds(held.places.handle());
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        visit(offset, bytes, new PieceVisitor() {
            private long at;

            @Override
            public void piece(MemorySegment memory, long from, long length) {
                MemorySegment.copy(memory, from, target, at, length);
                at += length;
            }
        });
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the view is closed");
        }
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            throw new IllegalStateException("the view is closed twice");
        }
        try {
            scope.close();
            held.store.release();
        } finally {
            wiring.open().decrementAndGet();
            attachment.release(held.lease);
        }
    }
}
