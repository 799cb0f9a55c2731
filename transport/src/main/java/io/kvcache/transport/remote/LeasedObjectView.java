package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import java.util.concurrent.atomic.AtomicBoolean;

/// An object that a lease keeps on the server, and segments that end with the view.
///
/// **Threads.** Any; closing it beside a use of it is the caller's mistake, which checked segments tell.
abstract class LeasedObjectView implements ObjectView {

    private final Wiring wiring;
    private final Attachment attachment;
    private final long lease;
    private final long bytes;
    private final ViewScope scope;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// @param lease given back at the end
    LeasedObjectView(Wiring wiring, Attachment attachment, long lease, long bytes) {
        this.wiring = wiring;
        this.attachment = attachment;
        this.lease = lease;
        this.bytes = bytes;
        scope = new ViewScope(wiring.options().checked());
        wiring.open().incrementAndGet();
        attachment.users().stay();
    }

    @Override
    public final long bytes() {
        return bytes;
    }

    /// What segments are limited to.
    final ViewScope scope() {
        return scope;
    }

    final boolean open() {
        return !closed.get();
    }

    final void requireOpen() {
        if (!open()) {
            throw new IllegalStateException("the view is closed");
        }
    }

    /// Lets go of what the bytes lie in. Once, after the segments have ended.
    abstract void letGo();

    @Override
    public final void close() {
        if (!closed.compareAndSet(false, true)) {
            throw new IllegalStateException("the view is closed twice");
        }
        try {
            scope.close();
            letGo();
        } finally {
            wiring.open().decrementAndGet();
            attachment.release(lease);
            attachment.users().leave();
        }
    }
}
