package io.kvcache.tiers.os;

import io.kvcache.core.spi.Clock;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// The time of the machine.
///
/// **Threads.** Any.
public final class SystemClock implements Clock {

    public static final SystemClock INSTANCE = new SystemClock();

    /// How soon a waiter sees, without a notification, that its time is over.
    private static final long MAX_WAIT_MILLIS = 10;

    private SystemClock() {}

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
