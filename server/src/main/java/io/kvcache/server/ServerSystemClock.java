package io.kvcache.server;

import io.kvcache.core.time.Clock;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// The machine's own time.
final class ServerSystemClock implements Clock {

    /// How soon a waiter sees what nobody notifies it of: that its time is over.
    private static final long MAX_WAIT_MILLIS = 10;

    @Override
    public long nanos() {
        return System.nanoTime();
    }

    @Override
    public void sleep(long nanos) {
        LockSupport.parkNanos(nanos);
    }

    @Override
    @SuppressWarnings("WaitNotInLoop") // the caller's loop asks again
    public void await(Object monitor, long nanos) throws InterruptedException {
        monitor.wait(Math.clamp(TimeUnit.NANOSECONDS.toMillis(nanos), 1, MAX_WAIT_MILLIS));
    }
}
