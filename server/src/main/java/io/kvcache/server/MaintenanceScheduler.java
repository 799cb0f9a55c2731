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
final class MaintenanceScheduler implements AutoCloseable {

    private static final Logger LOG = System.getLogger(MaintenanceScheduler.class.getName());

    /// Far longer than any turn takes; one that hangs at a file does not keep a server from going down.
    private static final long MAX_TASK_SECONDS = 10;

    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name("kvcache-housekeeping").factory());

    MaintenanceScheduler() {
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    void scheduleRepeating(long millis, Runnable task) {
        executor.scheduleWithFixedDelay(() -> runLoggingFailures(task), millis, millis, TimeUnit.MILLISECONDS);
    }

    /// Takes turns that say themselves how many milliseconds later the next one comes.
    ///
    /// @param millis before the first one, and after one that has failed
    void scheduleSelfPaced(long millis, LongSupplier task) {
        executor.schedule(() -> scheduleNext(millis, task), millis, TimeUnit.MILLISECONDS);
    }

    private void scheduleNext(long millis, LongSupplier task) {
        AtomicLong pause = new AtomicLong(millis);
        runLoggingFailures(() -> pause.set(task.getAsLong()));
        try {
            executor.schedule(() -> scheduleNext(millis, task), pause.get(), TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException closed) {
            LOG.log(Level.TRACE, "that was the last turn", closed);
        }
    }

    private static void runLoggingFailures(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException bug) {
            LOG.log(Level.ERROR, "housekeeping failed", bug);
        }
    }

    /// Begins no more turns and waits for the one that is under way, which is not interrupted.
    @Override
    public void close() {
        executor.shutdown();
        try {
            if (!executor.awaitTermination(MAX_TASK_SECONDS, TimeUnit.SECONDS)) {
                LOG.log(Level.ERROR, "housekeeping has not ended in {0} s", MAX_TASK_SECONDS);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
