package io.kvcache.transport.remote;

import io.kvcache.core.SegmentVisitor;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// An object that has arrived in this process's memory, in one piece.
final class RemoteObjectView extends LeasedObjectView {

    private final ArrivalMemory.Slot slot;
    private final int checksum;

    /// What the view owns.
    record Held(long lease, ArrivalMemory.Slot slot, long bytes, int checksum) {}

    RemoteObjectView(Wiring wiring, Attachment attachment, Held held) {
        super(wiring, attachment, held.lease, held.bytes);
        slot = held.slot;
        checksum = held.checksum;
    }

    @Override
    public void visit(long offset, long bytes, SegmentVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        if (bytes > 0) {
            each.visitSegment(scope().limit(slot.segment(bytes())).asReadOnly(), offset, bytes);
        }
    }

    @Override
    public int checksum() {
        requireOpen();
        return checksum;
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, bytes());
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        MemorySegment.copy(slot.segment(bytes()), offset, target, 0, bytes);
    }

    @Override
    void letGo() {
        slot.free();
    }
}
