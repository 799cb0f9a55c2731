package io.kvcache.transport.peer;

import java.util.concurrent.TimeUnit;

/// A sum of what has happened lately: it is halved every 30 seconds. All sums are halved at the same moments, so
/// the quotient of two of them does not jump.
///
/// **Threads.** Any.
final class DecayingSum {

    private static final long HALVING_NANOS = TimeUnit.SECONDS.toNanos(30);

    private long sum;
    private long halvings;

    synchronized void add(long amount, long nowNanos) {
        decay(nowNanos);
        sum += amount;
    }

    synchronized long value(long nowNanos) {
        decay(nowNanos);
        return sum;
    }

    private void decay(long nowNanos) {
        long now = Math.floorDiv(nowNanos, HALVING_NANOS);
        if (sum == 0) {
            halvings = now;
        } else if (now > halvings) {
            sum >>= Math.min(Long.SIZE - 1, now - halvings);
            halvings = now;
        }
    }
}
