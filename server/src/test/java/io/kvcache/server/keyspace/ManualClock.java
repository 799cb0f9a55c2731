package io.kvcache.server.keyspace;

import io.kvcache.core.spi.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.atomic.AtomicLong;

/// Both clocks of a server, moved by the test.
public final class ManualClock implements Clock, InstantSource {

    private static final long START_MILLIS = 1_800_000_000_000L;

    private final AtomicLong nanos = new AtomicLong();

    @Override
    public long nanos() {
        return nanos.get();
    }

    @Override
    public void sleep(long time) {
        nanos.addAndGet(time);
    }

    @Override
    public void await(Object monitor, long nanos) {
        sleep(nanos);
    }

    @Override
    public Instant instant() {
        return Instant.ofEpochMilli(START_MILLIS + nanos.get() / 1_000_000);
    }

    public void advance(Duration time) {
        nanos.addAndGet(time.toNanos());
    }
}
