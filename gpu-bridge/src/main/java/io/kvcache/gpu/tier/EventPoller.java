package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceEvent;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/// The wait of a tick. A device has no completion that could be waited for together with a wake-up, so
/// while something is on its way the thread looks again and again, with short pauses.
final class EventPoller {

    private volatile @Nullable Thread waiting;
    private volatile boolean woken;

    /// Waits until something was done, somebody wakes, or the time is over.
    ///
    /// @param busy whether there is anything to look for
    /// @param look answers how much was done
    void await(long nanos, BooleanSupplier busy, IntSupplier look) {
        if (nanos <= 0) {
            return;
        }
        waiting = Thread.currentThread();
        long since = System.nanoTime();
        long left = nanos;
        while (!woken && left > 0) {
            LockSupport.parkNanos(this, busy.getAsBoolean() ? Math.min(left, DeviceEvent.POLL_NANOS) : left);
            if (busy.getAsBoolean() && look.getAsInt() > 0) {
                break;
            }
            left = nanos - (System.nanoTime() - since);
        }
        waiting = null;
        woken = false;
    }

    /// Ends the wait, or the next one. Any thread.
    void wake() {
        woken = true;
        LockSupport.unpark(waiting);
    }
}
