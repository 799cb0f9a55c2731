package io.kvcache.core.contract;

import io.kvcache.core.spi.Clock;
import java.util.concurrent.atomic.AtomicLong;

/// Stands still until it is moved.
///
/// **Threads.** Any.
public record ManualClock(AtomicLong now) implements Clock {

    public ManualClock() {
        this(new AtomicLong());
    }

    @Override
    public long nanos() {
        return now.get();
    }

    @Override
    public void sleep(long nanos) {
        now.addAndGet(nanos);
    }

    @Override
    public void await(Object monitor, long nanos) {
        sleep(nanos);
    }
}
