package io.kvcache.bench.sim;

import io.kvcache.core.time.Clock;

/// Virtual time. It passes when somebody waits, and a little each time that it is read, so that no loop
/// which looks at it is endless. While it passes the world goes on.
final class SimClock implements Clock {

    static final long MILLI = 1_000_000;
    static final long SECOND = 1_000 * MILLI;

    private static final long READ_COST_NANOS = 10_000;

    /// Of one wait; a longer one makes longer steps.
    private static final int MAX_STEPS = 100;

    private final Runnable tickListener;
    private long now;
    private boolean inWorld;

    /// @param world does what there is to do at a moment
    SimClock(Runnable world) {
        this.tickListener = world;
    }

    @Override
    public long nanos() {
        now += READ_COST_NANOS;
        return now;
    }

    /// The present millisecond; looking at it takes no time.
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

    /// Has the world do what there is to do now; what it does takes part in no further tick.
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
