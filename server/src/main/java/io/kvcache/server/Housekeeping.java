package io.kvcache.server;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/// Runs what is done from time to time on one thread. A failure is logged and the next turn comes all the same.
final class Housekeeping implements AutoCloseable {

    private static final Logger LOG = System.getLogger(Housekeeping.class.getName());

    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("kvcache-housekeeping").factory());

    void every(long millis, Runnable turn) {
        thread.scheduleWithFixedDelay(() -> guarded(turn), millis, millis, TimeUnit.MILLISECONDS);
    }

    private static void guarded(Runnable turn) {
        try {
            turn.run();
        } catch (RuntimeException bug) {
            LOG.log(Level.ERROR, "housekeeping failed", bug);
        }
    }

    @Override
    public void close() {
        thread.shutdownNow();
    }
}
