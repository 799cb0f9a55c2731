package io.kvcache.tiers.device;

import java.util.concurrent.atomic.AtomicReference;

/// Ends the waits of a device's owner from other threads, at no cost to those who find it awake.
///
/// **Threads.** [#signal] any; the rest the owner.
final class Wakeup {

    // The owner sets the alarm before it waits and takes it back afterwards; both are one exchange, and so is the
    // ringing. One that comes before the setting makes the setting fail, so that the owner does not wait; one
    // that comes after it calls the engine. Ringing holds the lock for as long as it uses the engine, so that the
    // engine's descriptors are not closed, and given to somebody else, under it.

    private enum State {
        IDLE,
        ARMED,
        RUNG
    }

    private final IoBackend ioBackend;
    private final AtomicReference<State> state = new AtomicReference<>(State.IDLE);
    private boolean disabled;

    Wakeup(IoBackend ioBackend) {
        this.ioBackend = ioBackend;
    }

    /// The owner is about to wait.
    ///
    /// @return false when it has rung already, and the owner may not wait
    boolean arm() {
        return state.compareAndSet(State.IDLE, State.ARMED);
    }

    /// The owner waits no longer.
    ///
    /// @return whether it has rung
    boolean disarm() {
        return state.getAndSet(State.IDLE) == State.RUNG;
    }

    /// Ends the wait that the owner is in, or the next one.
    synchronized void signal() {
        if (!disabled && state.getAndSet(State.RUNG) == State.ARMED) {
            ioBackend.wake();
        }
    }

    /// From here on ringing does nothing, and none is under way.
    synchronized void disable() {
        disabled = true;
    }
}
