package io.kvcache.tiers.device;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// The thread checks of a [BlockDevice]: only the owner calls it, while it is open, and not from within a sink.
///
/// Each check throws [IllegalStateException] that names the device and the threads.
public final class OwnerCheck {

    private final String device;
    private final AtomicReference<@Nullable Thread> owner = new AtomicReference<>();
    private volatile boolean closed;
    private boolean delivering;

    /// @param device its name in messages
    public OwnerCheck(String device) {
        this.device = device;
    }

    /// Checks a call that uses the device, and makes the caller its owner if it has none.
    ///
    /// @return whether the caller has just become the owner
    public boolean claimOrRequireOwner() {
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
            throw foreignThread(caller);
        }
        return true;
    }

    /// Checks a call that no other thread may overlap, and leaves the owner as it is.
    public void requireNotForeign() {
        requireOpen();
        Thread holder = owner.get();
        if (holder != null && !holder.equals(Thread.currentThread())) {
            throw foreignThread(Thread.currentThread());
        }
    }

    /// Begins a delivery to a sink, during which the device may be neither polled nor closed.
    public void startDelivery() {
        requireNotDelivering();
        delivering = true;
    }

    /// Ends the delivery.
    public void endDelivery() {
        delivering = false;
    }

    /// Checks a close. A thread that has ended owns nothing, so any thread may close its device.
    public void requireClosable() {
        Thread holder = owner.get();
        if (holder == null || holder.isAlive()) {
            requireNotForeign();
        } else {
            requireOpen();
        }
        requireNotDelivering();
    }

    /// Closes the device: every later check fails.
    public void markClosed() {
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

    private IllegalStateException foreignThread(Thread caller) {
        return new IllegalStateException("%s belongs to %s, not to %s".formatted(device, owner.get(), caller));
    }
}
