package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.PieceVisitor;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/// An object that has arrived in this process's memory, in one piece.
final class RemoteObjectView implements ObjectView {

    private final Wiring wiring;
    private final Attachment attachment;
    private final Held held;
    private final ViewScope scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// What the view owns.
    record Held(long lease, ArrivalMemory.Slot slot, long bytes, int checksum) {}

    RemoteObjectView(Wiring wiring, Attachment attachment, Held held) {
        this.wiring = wiring;
        this.attachment = attachment;
        this.held = held;
        scope = new ViewScope(wiring.options().checked());
        wiring.open().incrementAndGet();
    }

    @Override
    public long bytes() {
        return held.bytes;
    }

    @Override
    public void visit(long offset, long bytes, PieceVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, held.bytes);
        if (bytes > 0) {
            each.piece(scope.limit(held.slot.segment(held.bytes)).asReadOnly(), offset, bytes);
        }
    }

    @Override
    public int checksum() {
        requireOpen();
        return held.checksum;
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, held.bytes);
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        MemorySegment.copy(held.slot.segment(held.bytes), offset, target, 0, bytes);
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
            held.slot.free();
        } finally {
            wiring.open().decrementAndGet();
            attachment.release(held.lease);
        }
    }
}
