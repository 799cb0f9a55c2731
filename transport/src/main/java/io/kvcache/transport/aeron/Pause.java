package io.kvcache.transport.aeron;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.IdleStrategy;

/// What a thread does that waits for the other side's bytes or room: spins for a bounded time, then sleeps,
/// for longer the longer nothing happens.
///
/// With few processors the other side may need the one that spins, so it spins for microseconds only. The sleeps
/// stay short for long enough that two sides which wait for each other do not send each other to sleep. In the end a
/// connection sleeps for 10 ms at a time, so that many idle ones cost little, and the first request after that may
/// take as long to be seen. With processors to spare it spins for about a millisecond and never sleeps
/// longer than one.
///
/// Not safe for several threads.
final class Pause implements IdleStrategy {

    /// As long as a sleep takes at the least is added by the kernel: some 50 µs.
    private static final long SHORT_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    private static final long LONG_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /// About 20 ms of short sleeps, then at least 50 ms of long ones.
    private static final int SHORT_SLEEPS = 250;

    private static final int LONG_SLEEPS = 50;

    private final int spins;
    private final long longestNanos;
    private int tries;

    private Pause(boolean dedicated, long longestNanos) {
        spins = dedicated ? 20_000 : 100;
        this.longestNanos = dedicated ? LONG_NANOS : longestNanos;
    }

    /// Of a connection.
    static Pause ofConnection(boolean dedicated) {
        return new Pause(dedicated, LONGEST_NANOS);
    }

    /// Of a driver, which all connections need when a part of a term is used up.
    static Pause ofDriver(boolean dedicated) {
        return new Pause(dedicated, LONG_NANOS);
    }

    /// Something happened.
    @Override
    public void reset() {
        tries = 0;
    }

    /// Nothing happened.
    @Override
    public void idle() {
        if (tries < spins) {
            tries++;
            Thread.onSpinWait();
            return;
        }
        int sleeps = tries - spins;
        if (sleeps < SHORT_SLEEPS) {
            tries++;
            LockSupport.parkNanos(SHORT_NANOS);
        } else if (sleeps < SHORT_SLEEPS + LONG_SLEEPS) {
            tries++;
            LockSupport.parkNanos(LONG_NANOS);
        } else {
            LockSupport.parkNanos(longestNanos);
        }
    }

    @Override
    public void idle(int work) {
        if (work > 0) {
            reset();
        } else {
            idle();
        }
    }
}
