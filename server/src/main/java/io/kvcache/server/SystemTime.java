package io.kvcache.server;

import io.kvcache.core.Clock;
import java.util.concurrent.locks.LockSupport;

/// The machine's own time.
final class SystemTime implements Clock {

    @Override
    public long nanos() {
        return System.nanoTime();
    }

    @Override
    public void pause(long nanos) {
        LockSupport.parkNanos(nanos);
    }
}
