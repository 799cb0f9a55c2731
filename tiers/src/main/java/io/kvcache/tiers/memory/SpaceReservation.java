package io.kvcache.tiers.memory;

import io.kvcache.tiers.memory.PagePrefaulter.BackgroundPrefaulter;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// Takes the space of a large file in memory by a thread of its own, from the front, while the front is in use.
///
/// The kernel clears each page that it gives, which takes .3 to .5 s a GiB. What is used before it has space waits
/// in [#awaitSpace] instead of being killed by SIGBUS. Where space runs out, as others took it since it was looked at,
/// a warning says so and the rest of the file is not to be used.
///
/// **Ownership.** Closed before the file's descriptor.
///
/// **Threads.** Any.
final class SpaceReservation implements AutoCloseable {

    private static final Logger LOG = System.getLogger(SpaceReservation.class.getName());

    /// Small stores have all of it at once, so that too little space is an error at their start.
    static final long AT_ONCE_BYTES = 256L << 20;

    private final MappingRequest wanted;
    private final ReservationStep step;
    private final Thread thread;

    // Guarded by this.
    private long reservedBytes;
    private boolean ended;

    private SpaceReservation(MappingRequest wanted, ReservationStep step) {
        this.wanted = wanted;
        this.step = step;
        reservedBytes = atOnce(wanted);
        thread = Thread.ofPlatform()
                .daemon()
                .name("kvcache-reserve-" + wanted.purpose())
                .unstarted(this::run);
    }

    /// The bytes of a file that [ShmFileFactory#create] is to reserve, the rest of which [#start] does.
    static long atOnce(MappingRequest wanted) {
        return Math.min(wanted.bytes(), AT_ONCE_BYTES);
    }

    /// Starts to reserve the rest of a file.
    static SpaceReservation start(MappingRequest wanted, ReservationStep step) {
        SpaceReservation started = new SpaceReservation(wanted, step);
        started.thread.start();
        return started;
    }

    /// As [io.kvcache.core.memory.HostMemory#awaitSpace], from the start of the file.
    synchronized boolean awaitSpace(long bytes) {
        boolean interrupted = false;
        while (reservedBytes < bytes && !ended) {
            try {
                wait();
            } catch (InterruptedException asked) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return reservedBytes >= bytes;
    }

    private void run() {
        long reserved = atOnce(wanted);
        try {
            while (reserved < wanted.bytes() && !hasEnded()) {
                reserved = step.reserveMore(reserved);
                advanceTo(reserved);
            }
        } catch (IOException | RuntimeException refused) {
            LOG.log(
                    Level.WARNING,
                    "The store goes on with {0} for values: {1}",
                    ByteSizeFormat.format(reserved),
                    refused.getMessage());
        } finally {
            end();
        }
    }

    private synchronized void advanceTo(long reserved) {
        reservedBytes = reserved;
        notifyAll();
    }

    private synchronized boolean hasEnded() {
        return ended;
    }

    private synchronized void end() {
        ended = true;
        notifyAll();
    }

    /// Reserves a step more of a file.
    @FunctionalInterface
    interface ReservationStep {

        /// Reserves the bytes that follow.
        ///
        /// @param reserved bytes at the start of the file that are
        /// @return how many are now
        long reserveMore(long reserved) throws IOException;
    }

    /// Stops after the step at hand, some 20 ms, and waits for that. May be called again.
    @Override
    public void close() {
        end();
        BackgroundPrefaulter.awaitEnd(thread);
    }
}
