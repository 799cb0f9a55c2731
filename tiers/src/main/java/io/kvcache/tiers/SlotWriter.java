package io.kvcache.tiers;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.time.Backoff;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Reserved room on its way to being sealed or abandoned: what block and object writers have in common.
///
/// Not safe for several threads at once, as no writer is.
final class SlotWriter {

    private final StoreContext storeContext;
    private final PutReservation putReservation;
    private final OpenHandle openHandle;
    private final @Nullable Arena scope;
    private boolean open;
    private @Nullable ChunkedCrc crc;

    /// Takes over a hold; gives it back at once when nothing is reserved.
    SlotWriter(StoreContext storeContext, OpenHandle openHandle, PutReservation putReservation) {
        this.storeContext = storeContext;
        this.openHandle = openHandle;
        this.putReservation = putReservation;
        open = putReservation.outcome() == PutOutcome.RESERVED;
        scope = open ? storeContext.openScope() : null;
        if (!open) {
            storeContext.openHandles().release(openHandle);
        }
    }

    PutOutcome outcome() {
        return putReservation.outcome();
    }

    int record() {
        return putReservation.record();
    }

    HostStore store() {
        return storeContext.store();
    }

    MemorySegment bind(MemorySegment slot) {
        return StoreContext.bind(scope, slot);
    }

    void requireOpen() {
        if (putReservation.outcome() != PutOutcome.RESERVED) {
            throw new IllegalStateException("nothing is reserved: the outcome is " + putReservation.outcome());
        }
        if (!open) {
            throw new IllegalStateException("the writer is sealed or closed");
        }
    }

    /// Fills `pieces` from `source`, and begins the sum with them on the way.
    void copyIn(MemorySegment from, List<MemorySegment> pieces) {
        ChunkedCrc own = new ChunkedCrc();
        long at = 0;
        for (MemorySegment piece : pieces) {
            own.copy(from, at, piece);
            at += piece.byteSize();
        }
        crc = own;
    }

    /// Adds bytes that are in their place to the sum, in order.
    void addToChecksum(MemorySegment bytes) {
        crc().update(bytes);
    }

    /// All is in its place and summed.
    SealOutcome seal() {
        return seal(crc().value());
    }

    /// Made when something is summed, which a store without disks leaves for later.
    private ChunkedCrc crc() {
        ChunkedCrc own = crc == null ? new ChunkedCrc() : crc;
        crc = own;
        return own;
    }

    /// All is in its place, and its sum is known.
    SealOutcome seal(int checksum) {
        requireOpen();
        open = false;
        try {
            StoreContext.close(scope);
            return putReservation.replaces() && storeContext.store().tierPort().hasDisks()
                    ? retrySeal(checksum)
                    : storeContext.store().seal(putReservation.record(), checksum);
        } finally {
            storeContext.notifyChanged(putReservation.record());
            storeContext.openHandles().release(openHandle);
        }
    }

    private SealOutcome retrySeal(int checksum) {
        HostStore store = storeContext.store();
        long equal = store.pinEqual(putReservation.record(), checksum);
        try {
            return store.seal(putReservation.record(), checksum, equal);
        } finally {
            if (RecordHandle.isFound(equal)) {
                store.lookup().unpin(RecordHandle.record(equal));
            }
        }
    }

    void close() {
        if (open) {
            open = false;
            try {
                StoreContext.close(scope);
            } finally {
                storeContext.store().abandon(putReservation.record());
                storeContext.notifyChanged(putReservation.record());
                storeContext.openHandles().release(openHandle);
            }
        }
    }

    /// Waits for room while everything is pinned, or waits to be written to disk: the caller asks the store
    /// again at growing intervals, no longer than its timeout.
    ///
    /// ```java
    /// RoomWaiter.Wait wait = roomWaiter.begin(timeoutNanos);
    /// PutReservation room;
    /// do {
    ///     room = store.reserve(entry, chain, index, wait.isSparing());
    /// } while (wait.repeats(room));
    /// ```
    ///
    /// Unpinning takes no lock and wakes no thread, which keeps it at some nanoseconds; a wait for room is rare
    /// and costs a millisecond more instead.
    static final class RoomWaiter {

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

        /// Begins a request for room.
        ///
        /// @param timeoutNanos how long it may wait
        Wait begin(long timeoutNanos) {
            releaseExpired();
            return new Wait(timeoutNanos);
        }

        private void releaseExpired() {
            if (ttlQueue != null) {
                ttlQueue.releaseExpired();
            }
        }

        /// One request for room.
        ///
        /// **Threads.** The caller's alone.
        final class Wait {

            private final long timeoutNanos;
            private final long start = clock.nanos();
            private boolean sparing;
            private boolean hasReleasedPins;
            private @Nullable Backoff pause;

            private Wait(long timeoutNanos) {
                this.timeoutNanos = timeoutNanos;
                sparing = timeoutNanos > 0;
            }

            /// Returns whether the next attempt leaves what waits to be written to disk where it is, rather
            /// answering NO_ROOM: while the caller can wait for the writes, but not for long.
            boolean isSparing() {
                return sparing;
            }

            /// Returns whether the caller is to ask again, after a pause. An interrupt ends the wait, as no
            /// pause would take any time from then on; a put that was sent away evicts nothing any more.
            ///
            /// @param room what the store has answered
            boolean repeats(PutReservation room) {
                if (room.outcome() != PutOutcome.NO_ROOM) {
                    return false;
                }
                if (pins != null && !hasReleasedPins) {
                    pins.releaseExpired();
                    hasReleasedPins = true;
                    return true;
                }
                hasReleasedPins = false;
                if (timeoutNanos == 0 || Thread.currentThread().isInterrupted() || !pause()) {
                    onRefused.run();
                    return false;
                }
                releaseExpired();
                return true;
            }

            /// @return false when the time is over
            private boolean pause() {
                long limit = sparing ? Math.min(timeoutNanos, MAX_WAIT_FOR_WRITES_NANOS) : timeoutNanos;
                long left = limit - (clock.nanos() - start);
                if (left > 0) {
                    pause = pause == null ? new Backoff(INITIAL_PAUSE_NANOS, MAX_PAUSE_NANOS) : pause;
                    clock.sleep(Math.min(pause.nextNanos(), left));
                    return true;
                }
                boolean wasSparing = sparing;
                sparing = false;
                pause = null;
                return wasSparing;
            }
        }

        long nanos() {
            return clock.nanos();
        }

        /// Returns the rest of a timeout that began at `start`; 0 when it has passed.
        long remainingNanos(long start, long timeoutNanos) {
            return Math.max(0, timeoutNanos - (clock.nanos() - start));
        }
    }
}
