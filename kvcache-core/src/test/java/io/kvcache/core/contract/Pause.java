package io.kvcache.core.contract;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// A rest between two looks at something that a test waits for, so that what it waits for has the processor.
public final class Pause {

    private static final long NANOS = TimeUnit.MICROSECONDS.toNanos(500);

    private Pause() {}

    /// Rests for half a millisecond.
    public static void briefly() {
        LockSupport.parkNanos(NANOS);
    }
}
