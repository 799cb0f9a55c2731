package io.kvcache.transport.aeron;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.IdleStrategy;

/// How a thread waits for bytes or room from the other side: it spins for a bounded time, then sleeps. The sleeps
/// get longer while nothing happens.
///
/// **Shared processors.** The other side may need the processor that spins, so the thread spins for microseconds
/// only. Its sleeps stay short long enough that two sides that wait for each other do not both fall into long
/// sleeps. Finally it sleeps for 10 ms at a time, so that an idle connection costs little. Then the other side's
/// connection may notice a first request 10 ms late, and over UDP two drivers before it may each do so too.
///
/// **Dedicated processors.** The thread spins for about a millisecond and never sleeps longer than one.
///
/// Each event earns short sleeps. A connection regains all of them at once, since its events are requests and
/// answers. A driver regains only some for each event: it hears of live streams ten times a second, and with all
/// short sleeps it would never reach the long ones.
///
/// Not safe for several threads.
final class AdaptiveIdleStrategy implements IdleStrategy {

    /// The kernel adds its least sleep of about 50 µs.
    private static final long SHORT_SLEEP_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    private static final long LONG_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX_SLEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /// About 20 ms of short sleeps, then at least 50 ms of long ones.
    private static final int SHORT_SLEEPS = 250;

    private static final int LONG_SLEEPS = 50;

    /// Sleeps of both kinds that a driver earns for each event: half a millisecond of short ones, then about the
    /// time that a sleeping side takes to answer.
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

    /// Returns a strategy for a connection's thread.
    static AdaptiveIdleStrategy forConnection(boolean dedicated) {
        return new AdaptiveIdleStrategy(dedicated, SHORT_SLEEPS);
    }

    /// Returns a strategy for a thread of a driver, or of a client that listens to one. All connections need the
    /// driver when a part of a term is used up, and over UDP for every byte.
    static AdaptiveIdleStrategy forDriver(boolean dedicated) {
        return new AdaptiveIdleStrategy(dedicated, DRIVERS_SLEEPS);
    }

    /// Restarts spinning and regains short sleeps after an event.
    @Override
    public void reset() {
        tries = 0;
        shortSleeps = Math.min(SHORT_SLEEPS, shortSleeps + earned);
        longSleeps = Math.min(LONG_SLEEPS, longSleeps + earned);
    }

    /// Spins or sleeps once, as nothing happened.
    @Override
    public void idle() {
        if (tries < spins) {
            tries++;
            Thread.onSpinWait();
        } else {
            LockSupport.parkNanos(nextSleepNanos());
        }
    }

    /// Returns the length of the next sleep and uses it up.
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
