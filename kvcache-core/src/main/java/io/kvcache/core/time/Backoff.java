package io.kvcache.core.time;

/// Pauses between attempts: each twice as long as the one before, up to a limit. Needs no clock of its own, so that
/// simulations drive it.
///
/// **Threads.** One at a time.
public final class Backoff {

    private final long initialNanos;
    private final long maxNanos;
    private long pauseNanos;

    /// @param initialNanos the first pause, above 0
    /// @param maxNanos the longest, at least the first
    public Backoff(long initialNanos, long maxNanos) {
        if (initialNanos <= 0 || maxNanos < initialNanos) {
            throw new IllegalArgumentException("pauses are " + initialNanos + " to " + maxNanos
                    + " ns; the first must be above 0, and the longest not below it");
        }
        this.initialNanos = initialNanos;
        this.maxNanos = maxNanos;
        pauseNanos = initialNanos;
    }

    /// The pause as it is now, in nanoseconds.
    public long currentNanos() {
        return pauseNanos;
    }

    /// The pause as it is now; the next one is twice as long.
    public long nextNanos() {
        long pause = pauseNanos;
        increase();
        return pause;
    }

    /// An attempt has failed: the pause is twice as long from now on.
    public void increase() {
        pauseNanos = pauseNanos > maxNanos / 2 ? maxNanos : 2 * pauseNanos;
    }

    /// An attempt has succeeded: the pause is the first one again.
    public void reset() {
        pauseNanos = initialNanos;
    }
}
