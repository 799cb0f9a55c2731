package io.kvcache.tiers;

import io.kvcache.core.Clock;
import java.util.concurrent.locks.LockSupport;

/// The machine's own time.
final class SystemClock implements Clock {

    static final SystemClock INSTANCE = new SystemClock();

    private SystemClock() {}

    @Override
    public long nanos() {
        return System.nanoTime();
    }

    @Override
    public void pause(long nanos) {
        LockSupport.parkNanos(nanos);
    }
}
