package io.kvcache.tiers;

import io.kvcache.core.ObjectView;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/// A pinned object in host memory.
final class HostObjectView implements ObjectView {

    private final HostTable.Source source;
    private final Hold hold;
    private final int record;
    private final StoredObject stored;
    private final SegmentScope scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// Takes over a pin and a hold.
    HostObjectView(HostTable.Source source, Hold hold, int record, StoredObject stored) {
        this.source = source;
        this.hold = hold;
        this.record = record;
        this.stored = stored;
        scope = SegmentScope.open(source.checked());
    }

    @Override
    public long bytes() {
        return stored.valueBytes();
    }

    @Override
    public List<MemorySegment> pieces() {
        requireOpen();
        return stored.value().stream()
                .map(piece -> scope.limit(piece).asReadOnly())
                .toList();
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
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            throw new IllegalStateException("the view is closed twice");
        }
        try {
            scope.close();
        } finally {
            source.store().lookup().unpin(record);
            source.holders().leave(hold);
        }
    }
}
