package io.kvcache.tiers;

import io.kvcache.core.spi.Clock;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Time that goes slower than outside, for tests in which a disk is to be in time, however busy the machine: a store
/// waits two seconds for the write of a block that has to go, and a disk that others use may take longer.
///
/// **Threads.** Any.
final class SlowClock implements Clock {

    private static final int SLOWDOWN = 20;
    private static final long MAX_WAIT_MILLIS = 10;

    @Override
    public long nanos() {
        return System.nanoTime() / SLOWDOWN;
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
