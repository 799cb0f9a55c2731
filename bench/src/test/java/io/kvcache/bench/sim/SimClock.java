package io.kvcache.bench.sim;

import io.kvcache.core.spi.Clock;

/// Virtual time.
///
/// It advances when a caller waits. It also advances a little with each read, so that every loop with a
/// deadline ends. While a caller waits, the simulated world runs.
final class SimClock implements Clock {

    static final long MILLI = 1_000_000;
    static final long SECOND = 1_000 * MILLI;

    private static final long READ_COST_NANOS = 10_000;

    /// Most steps of one wait. A longer wait makes longer steps.
    private static final int MAX_STEPS = 100;

    private final Runnable tickListener;
    private long now;
    private boolean inWorld;

    /// @param world does the work that is due at the current time
    SimClock(Runnable world) {
        this.tickListener = world;
    }

    @Override
    public long nanos() {
        now += READ_COST_NANOS;
        return now;
    }

    /// Returns the current millisecond. Reading it takes no virtual time.
    long millis() {
        return now / MILLI;
    }

    @Override
    public void sleep(long nanos) {
        long until = now + nanos;
        long step = Math.max(MILLI, nanos / MAX_STEPS);
        do {
            now = Math.max(now, Math.min(until, now + step));
            tick();
        } while (now < until);
    }

    /// Lets the world do the work that is due now. If that work waits, it causes no nested tick.
    private void tick() {
        if (!inWorld) {
            inWorld = true;
            try {
                tickListener.run();
            } finally {
                inWorld = false;
            }
        }
    }

    @Override
    public void await(Object monitor, long nanos) {
        sleep(Math.min(nanos, MILLI));
    }
}
