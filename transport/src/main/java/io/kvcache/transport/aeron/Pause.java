package io.kvcache.transport.aeron;

import java.util.concurrent.locks.LockSupport;

/// What a thread does that waits for the other side's bytes or room: spins for a bounded time, then sleeps
/// for longer and longer.
///
/// With few processors the other side may need the one that spins, so it spins for microseconds only. After
/// 50 ms without anything it sleeps for 10 ms at a time: an idle connection costs some hundredths of a
/// percent of a processor, and the first request after that up to 10 ms. With processors to spare it spins for
/// about a millisecond and never sleeps longer than one.
///
/// Not safe for several threads.
final class Pause {

    private static final long SHORTEST_NANOS = 1_000;
    private static final long LONG_NANOS = 1_000_000;
    private static final long LONGEST_NANOS = 10_000_000;

    /// How many sleeps of 1 ms make 50 ms of silence.
    private static final int LONG_SLEEPS = 50;

    private final boolean dedicated;
    private final int spins;
    private int tries;
    private int longSleeps;
    private long nanos = SHORTEST_NANOS;

    Pause(boolean dedicated) {
        this.dedicated = dedicated;
        spins = dedicated ? 20_000 : 100;
    }

    /// Something happened.
    void reset() {
        tries = 0;
        longSleeps = 0;
        nanos = SHORTEST_NANOS;
    }

    /// Nothing happened.
    void pause() {
        if (tries < spins) {
            tries++;
            Thread.onSpinWait();
            return;
        }
        LockSupport.parkNanos(nanos);
        if (nanos < LONG_NANOS) {
            nanos = Math.min(2 * nanos, LONG_NANOS);
        } else if (!dedicated && longSleeps++ >= LONG_SLEEPS) {
            nanos = LONGEST_NANOS;
        }
    }
}
