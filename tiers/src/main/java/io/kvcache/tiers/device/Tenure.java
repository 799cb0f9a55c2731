package io.kvcache.tiers.device;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Who may call a device: its one owner, while it is open, and not from within a sink.
final class Tenure {

    private final String device;
    private final AtomicReference<@Nullable Thread> owner = new AtomicReference<>();
    private volatile boolean closed;
    private boolean delivering;

    /// @param device its name in messages
    Tenure(String device) {
        this.device = device;
    }

    /// For calls that use the device: makes the caller its owner if there is none.
    ///
    /// @return whether the caller has just become the owner
    boolean use() {
        requireOpen();
        Thread caller = Thread.currentThread();
        if (caller.equals(owner.get())) {
            return false;
        }
        if (caller.isVirtual()) {
            throw new IllegalStateException(
                    "%s must be used by a platform thread, not by %s".formatted(device, caller));
        }
        if (!owner.compareAndSet(null, caller)) {
            throw foreign(caller);
        }
        return true;
    }

    /// For calls that need nobody else to be using it, and make nobody the owner.
    void visit() {
        requireOpen();
        Thread holder = owner.get();
        if (holder != null && !holder.equals(Thread.currentThread())) {
            throw foreign(Thread.currentThread());
        }
    }

    void startDelivery() {
        requireNotDelivering();
        delivering = true;
    }

    void endDelivery() {
        delivering = false;
    }

    /// For the close; a thread that has ended owns nothing.
    void requireClosable() {
        Thread holder = owner.get();
        if (holder == null || holder.isAlive()) {
            visit();
        } else {
            requireOpen();
        }
        requireNotDelivering();
    }

    void end() {
        closed = true;
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException(device + " is closed");
        }
    }

    private void requireNotDelivering() {
        if (delivering) {
            throw new IllegalStateException(device + " must not be polled or closed from within a sink");
        }
    }

    private IllegalStateException foreign(Thread caller) {
        return new IllegalStateException("%s belongs to %s, not to %s".formatted(device, owner.get(), caller));
    }
}
