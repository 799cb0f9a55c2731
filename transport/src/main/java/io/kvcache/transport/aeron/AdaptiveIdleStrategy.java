package io.kvcache.transport.aeron;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.IdleStrategy;

/// What a thread does that waits for the other side's bytes or room: spins for a bounded time, then sleeps,
/// for longer the longer nothing happens.
///
/// With few processors the other side may need the one that spins, so it spins for microseconds only. The sleeps
/// stay short for long enough that two sides which wait for each other do not send each other to sleep. In the end
/// it sleeps for 10 ms at a time, so that what is idle costs little, and the first request after that may take as
/// long to be seen by the other side's connection, over UDP by two drivers before it. With processors to spare it
/// spins for about a millisecond and never sleeps longer than one.
///
/// What happens earns short sleeps. A connection has all of them back at once: what it hears is a request, or an
/// answer. A driver has some back for each thing it does, as it hears of streams that live ten times a second, and
/// all of them would keep it from ever sleeping long.
///
/// Not safe for several threads.
final class AdaptiveIdleStrategy implements IdleStrategy {

    /// As long as a sleep takes at the least is added by the kernel: some 50 µs.
    private static final long SHORT_SLEEP_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    private static final long LONG_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /// About 20 ms of short sleeps, then at least 50 ms of long ones.
    private static final int SHORT_SLEEPS = 250;

    private static final int LONG_SLEEPS = 50;

    /// Of both kinds, for each thing that a driver does: half a millisecond, and then about as long as one that
    /// slept takes to answer.
    private static final int DRIVERS_SLEEPS = 8;

    private final int spins;
    private final int earned;
    private final long maxSleepNanos;
    private int tries;
    private int shortSleeps = SHORT_SLEEPS;
    private int longSleeps = LONG_SLEEPS;

    private AdaptiveIdleStrategy(boolean dedicated, int earned) {
        spins = dedicated ? 20_000 : 100;
        maxSleepNanos = dedicated ? LONG_SLEEP_NANOS : MAX_SLEEP_NANOS;
        this.earned = earned;
    }

    /// Of a connection.
    static AdaptiveIdleStrategy forConnection(boolean dedicated) {
        return new AdaptiveIdleStrategy(dedicated, SHORT_SLEEPS);
    }

    /// Of a driver's threads, which all connections need when a part of a term is used up, and over UDP for
    /// every byte, and of those that hear from it.
    static AdaptiveIdleStrategy forDriver(boolean dedicated) {
        return new AdaptiveIdleStrategy(dedicated, DRIVERS_SLEEPS);
    }

    /// Something happened.
    @Override
    public void reset() {
        tries = 0;
        shortSleeps = Math.min(SHORT_SLEEPS, shortSleeps + earned);
        longSleeps = Math.min(LONG_SLEEPS, longSleeps + earned);
    }

    /// Nothing happened.
    @Override
    public void idle() {
        if (tries < spins) {
            tries++;
            Thread.onSpinWait();
        } else {
            LockSupport.parkNanos(nextSleepNanos());
        }
    }

    /// How long to sleep, and one such sleep less.
    long nextSleepNanos() {
        if (shortSleeps > 0) {
            shortSleeps--;
            return SHORT_SLEEP_NANOS;
        }
        if (longSleeps > 0) {
            longSleeps--;
            return LONG_SLEEP_NANOS;
        }
        return maxSleepNanos;
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
