package io.kvcache.server;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/// Runs periodic tasks on one thread. A failure is logged, and the task runs again at its next time.
///
/// **Ownership.** [#close] ends it before what the turns work on is closed.
final class MaintenanceScheduler implements AutoCloseable {

    private static final Logger LOG = System.getLogger(MaintenanceScheduler.class.getName());

    /// Far longer than any task takes; a task that hangs at a file does not delay the shutdown for ever.
    private static final long MAX_TASK_SECONDS = 10;

    private static final long FILE_CHECK_MILLIS = 1000;

    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name("kvcache-housekeeping").factory());

    MaintenanceScheduler() {
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    void scheduleRepeating(long millis, Runnable task) {
        executor.scheduleWithFixedDelay(() -> runLoggingFailures(task), millis, millis, TimeUnit.MILLISECONDS);
    }

    /// Has files read again when they have changed. A failure is logged, and the next change tries again.
    ///
    /// @param what for messages
    void scheduleReload(String what, List<Path> files, FileReloader.ReloadAction reload) {
        scheduleRepeating(FILE_CHECK_MILLIS, new FileReloader(what, files, reload));
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
            LOG.log(Level.TRACE, "the scheduler is closed; the task does not run again", closed);
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
                LOG.log(Level.ERROR, "housekeeping did not end within {0} s", MAX_TASK_SECONDS);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// Rereads files when they have changed. A failure is logged, and the next change tries again.
    ///
    /// **Threads.** One at a time.
    static final class FileReloader implements Runnable {

        /// Reads the files.
        @FunctionalInterface
        interface ReloadAction {
            void run() throws IOException;
        }

        private final String description;
        private final List<Path> files;
        private final ReloadAction reloadAction;
        private List<String> lastStamps;

        /// @param what for messages
        FileReloader(String what, List<Path> files, ReloadAction reloadAction) {
            this.description = what;
            this.files = List.copyOf(files);
            this.reloadAction = reloadAction;
            lastStamps = readStamps();
        }

        @Override
        public void run() {
            List<String> now = readStamps();
            if (now.equals(lastStamps)) {
                return;
            }
            lastStamps = now;
            try {
                reloadAction.run();
                LOG.log(Level.INFO, description + " reloaded");
            } catch (IOException unusable) {
                LOG.log(
                        Level.WARNING,
                        description + " changed but cannot be used, so the server keeps the previous ones: "
                                + unusable.getMessage());
            }
        }

        private List<String> readStamps() {
            return files.stream().map(FileReloader::stamp).toList();
        }

        private static String stamp(Path file) {
            try {
                BasicFileAttributes now = Files.readAttributes(file, BasicFileAttributes.class);
                return now.lastModifiedTime() + " " + now.size() + " " + now.fileKey();
            } catch (IOException gone) {
                return "";
            }
        }
    }
}
