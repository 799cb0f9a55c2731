package io.kvcache.server;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/// Runs what is done from time to time on one thread. A failure is logged and the next turn comes all the same.
///
/// **Ownership.** [#close] ends it before what the turns work on is closed.
final class Housekeeping implements AutoCloseable {

    private static final Logger LOG = System.getLogger(Housekeeping.class.getName());

    /// Far longer than any turn takes; one that hangs at a file does not keep a server from going down.
    private static final long LONGEST_TURN_SECONDS = 10;

    private final ScheduledThreadPoolExecutor thread = new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name("kvcache-housekeeping").factory());

    Housekeeping() {
        thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    void every(long millis, Runnable turn) {
        thread.scheduleWithFixedDelay(() -> guarded(turn), millis, millis, TimeUnit.MILLISECONDS);
    }

    /// Takes turns that say themselves how many milliseconds later the next one comes.
    ///
    /// @param millis before the first one, and after one that has failed
    void paced(long millis, LongSupplier turn) {
        thread.schedule(() -> next(millis, turn), millis, TimeUnit.MILLISECONDS);
    }

    private void next(long millis, LongSupplier turn) {
        AtomicLong pause = new AtomicLong(millis);
        guarded(() -> pause.set(turn.getAsLong()));
        try {
            thread.schedule(() -> next(millis, turn), pause.get(), TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException closed) {
            LOG.log(Level.TRACE, "that was the last turn", closed);
        }
    }

    private static void guarded(Runnable turn) {
        try {
            turn.run();
        } catch (RuntimeException bug) {
            LOG.log(Level.ERROR, "housekeeping failed", bug);
        }
    }

    /// Begins no more turns and waits for the one that is under way, which is not interrupted.
    @Override
    public void close() {
        thread.shutdown();
        try {
            if (!thread.awaitTermination(LONGEST_TURN_SECONDS, TimeUnit.SECONDS)) {
                LOG.log(Level.ERROR, "housekeeping has not ended in {0} s", LONGEST_TURN_SECONDS);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
