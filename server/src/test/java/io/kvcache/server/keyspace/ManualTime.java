package io.kvcache.server.keyspace;

import io.kvcache.core.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.atomic.AtomicLong;

/// Both clocks of a server, moved by the test.
public final class ManualTime implements Clock, InstantSource {

    private static final long START_MILLIS = 1_800_000_000_000L;

    private final AtomicLong nanos = new AtomicLong();

    @Override
    public long nanos() {
        return nanos.get();
    }

    @Override
    public void pause(long time) {
        nanos.addAndGet(time);
    }

    @Override
    public void await(Object monitor, long nanos) {
        pause(nanos);
    }

    @Override
    public Instant instant() {
        return Instant.ofEpochMilli(START_MILLIS + nanos.get() / 1_000_000);
    }

    public void pass(Duration time) {
        nanos.addAndGet(time.toNanos());
    }
}
