package io.kvcache.gpu.host;

import io.kvcache.gpu.driver.DeviceException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// What the streams of one pretended device have in common: its pace, the first thing that went wrong,
/// and waiting.
///
/// **Threads.** Any.
final class Shared {

    private final Object changed = new Object();
    private final Pace pace;
    private volatile @Nullable DeviceException failure;
    private volatile boolean ending;

    Shared(Pace pace) {
        this.pace = pace;
    }

    void pause() {
        pace.pause();
    }

    /// Something failed: nothing is done any more.
    void fail(DeviceException cause) {
        if (failure == null) {
            failure = cause;
        }
        announce();
    }

    /// The device is being closed: nobody waits any more.
    void end() {
        ending = true;
        announce();
    }

    boolean failed() {
        return failure != null;
    }

    boolean over() {
        return ending || failure != null;
    }

    /// @throws DeviceException when something failed
    void require() {
        DeviceException cause = failure;
        if (cause != null) {
            throw new DeviceException(cause.error(), "after a failure", String.valueOf(cause.getMessage()));
        }
    }

    /// Wakes those who wait.
    void announce() {
        synchronized (changed) {
            changed.notifyAll();
        }
    }

    /// Waits until something is so, or nothing is done any more.
    void until(BooleanSupplier so) throws InterruptedException {
        synchronized (changed) {
            while (!so.getAsBoolean() && !over()) {
                changed.wait();
            }
        }
    }
}
