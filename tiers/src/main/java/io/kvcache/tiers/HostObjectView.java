package io.kvcache.tiers;

import io.kvcache.core.ObjectView;
import io.kvcache.core.SegmentVisitor;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/// A pinned object in host memory.
final class HostObjectView implements ObjectView {

    private final HostBlockTable.StoreContext storeContext;
    private final OpenHandle openHandle;
    private final StoredObject stored;
    private final SegmentScope scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// Takes over a pin and a hold.
    HostObjectView(HostBlockTable.StoreContext storeContext, OpenHandle openHandle, StoredObject stored) {
        this.storeContext = storeContext;
        this.openHandle = openHandle;
        this.stored = stored;
        scope = SegmentScope.open(storeContext.checked());
    }

    @Override
    public long bytes() {
        return stored.valueBytes();
    }

    @Override
    public void visit(long offset, long bytes, SegmentVisitor each) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, stored.valueBytes());
        MemorySegment readable = scope.bind(storeContext.store().memory()).asReadOnly();
        stored.visit(offset, bytes, (_, from, length) -> each.visitSegment(readable, from, length));
    }

    @Override
    public int checksum() {
        requireOpen();
        return stored.checksum();
    }

    @Override
    public long handle() {
        requireOpen();
        return storeContext.store().records().handle(stored.record());
    }

    @Override
    public void copyTo(long offset, long bytes, MemorySegment target) {
        requireOpen();
        Objects.checkFromIndexSize(offset, bytes, stored.valueBytes());
        Objects.checkFromIndexSize(0, bytes, target.byteSize());
        stored.copyTo(offset, bytes, target);
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the view is closed");
        }
    }

    @Override
    public boolean isValid() {
        return true;
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            scope.close();
        } finally {
            storeContext.store().lookup().unpin(stored.record());
            storeContext.openHandles().release(openHandle);
        }
    }
}
