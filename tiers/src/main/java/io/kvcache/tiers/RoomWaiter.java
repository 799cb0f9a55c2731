package io.kvcache.tiers;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.time.Backoff;
import io.kvcache.core.time.Clock;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Waits for room while everything is pinned: asks again at growing intervals, no longer than the time-out.
///
/// Unpinning takes no lock and wakes no thread, which keeps it at some nanoseconds; a wait for room is rare and
/// costs a millisecond more instead.
final class RoomWaiter {

    /// How long a put waits for blocks that are being written to disk before it has one evicted unwritten:
    /// longer than a disk takes for what may be on its way to it.
    private static final long MAX_WAIT_FOR_WRITES_NANOS = TimeUnit.SECONDS.toNanos(2);

    private static final long INITIAL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
    private static final long MAX_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final Clock clock;
    private final Runnable onRefused;
    private final @Nullable TtlQueue ttlQueue;
    private final @Nullable TimedPins pins;

    /// One of a store that nothing is hinted to.
    ///
    /// @param refused run for each request for room that ends without any, however often it was tried
    RoomWaiter(Clock clock, Runnable refused) {
        this(clock, refused, null, null);
    }

    /// @param ttlQueue what is over by its time makes room first
    /// @param pins those whose time is over end when there is no room
    RoomWaiter(Clock clock, Runnable refused, @Nullable TtlQueue ttlQueue, @Nullable TimedPins pins) {
        this.clock = clock;
        this.onRefused = refused;
        this.ttlQueue = ttlQueue;
        this.pins = pins;
    }

    /// Asks for room.
    @FunctionalInterface
    interface Attempt {
        /// Reserves, or answers why not.
        ///
        /// @param keepUnwritten whether what waits to be written to disk is to stay where it is
        PutReservation reserve(boolean keepUnwritten);
    }

    /// Asks for room until there is some; while blocks wait to be written to disk, waits for them rather
    /// than evict them unwritten, but not for long. An interrupt ends the wait, as no pause would take any
    /// time from then on.
    PutReservation reserve(long timeoutNanos, Attempt attempt) {
        long start = clock.nanos();
        PutReservation spared = poll(Math.min(timeoutNanos, MAX_WAIT_FOR_WRITES_NANOS), attempt, true);
        boolean ended = timeoutNanos > 0 && Thread.currentThread().isInterrupted();
        PutReservation answer =
                spared.outcome() == PutOutcome.NO_ROOM && !ended // a put that was sent away evicts nothing any more
                        ? poll(remainingNanos(start, timeoutNanos), attempt, false)
                        : spared;
        if (answer.outcome() == PutOutcome.NO_ROOM) {
            onRefused.run();
        }
        return answer;
    }

    private PutReservation poll(long timeoutNanos, Attempt attempt, boolean keepUnwritten) {
        PutReservation answer = ask(attempt, keepUnwritten);
        if (answer.outcome() != PutOutcome.NO_ROOM || timeoutNanos == 0) {
            return answer;
        }
        long start = clock.nanos();
        Backoff pause = new Backoff(INITIAL_PAUSE_NANOS, MAX_PAUSE_NANOS);
        long left = timeoutNanos;
        while (answer.outcome() == PutOutcome.NO_ROOM
                && left > 0
                && !Thread.currentThread().isInterrupted()) {
            clock.sleep(Math.min(pause.nextNanos(), left));
            answer = ask(attempt, keepUnwritten);
            left = timeoutNanos - (clock.nanos() - start);
        }
        return answer;
    }

    /// Asks once, after what is over by its time was let go, and once more without the pins whose time is over.
    private PutReservation ask(Attempt attempt, boolean keepUnwritten) {
        if (ttlQueue != null) {
            ttlQueue.releaseExpired();
        }
        PutReservation answer = attempt.reserve(keepUnwritten);
        if (answer.outcome() != PutOutcome.NO_ROOM || pins == null) {
            return answer;
        }
        pins.releaseExpired();
        return attempt.reserve(keepUnwritten);
    }

    long nanos() {
        return clock.nanos();
    }

    /// Returns the rest of a timeout that began at `start`; 0 when it has passed.
    long remainingNanos(long start, long timeoutNanos) {
        return Math.max(0, timeoutNanos - (clock.nanos() - start));
    }
}
