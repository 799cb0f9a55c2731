package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.SegmentVisitor;
import io.kvcache.transport.shm.SharedStore;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// An object where it lies in the server's memory, which keeps it there for as long as the lease lasts.
final class PlacedObjectView extends LeasedObjectView {

    private final Held held;

    /// What the view owns: a use of the mapped memory.
    private record Held(SharedStore store, ObjectPlaces places, List<MemorySegment> pieces) {}

    private PlacedObjectView(Wiring wiring, Attachment attachment, ObjectArrival.Found found, Held held) {
        super(wiring, attachment, found.lease(), found.bytes());
        this.held = held;
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
        return new PlacedObjectView(wiring, attachment, found, new Held(store, places, pieces));
    }

    @Override
    public void visit(long offset, long bytes, SegmentVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        long begin = 0;
        for (MemorySegment piece : held.pieces) {
            long from = Math.max(offset, begin) - begin;
            long to = Math.min(offset + bytes, begin + piece.byteSize()) - begin;
            if (from < to) {
                each.visitSegment(scope().limit(piece).asReadOnly(), from, to - from);
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
        return open() && held.store.holds(held.places.handle());
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        visit(offset, bytes, new SegmentVisitor() {
            private long at;

            @Override
            public void piece(MemorySegment memory, long from, long length) {
                MemorySegment.copy(memory, from, target, at, length);
                at += length;
            }
        });
    }

    @Override
    void letGo() {
        held.store.release();
    }
}
