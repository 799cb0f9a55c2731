package io.kvcache.server;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/// Runs what is done from time to time on one thread. A failure is logged and the next turn comes all the same.
final class Housekeeping implements AutoCloseable {

    private static final Logger LOG = System.getLogger(Housekeeping.class.getName());

    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("kvcache-housekeeping").factory());

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
        thread.schedule(() -> next(millis, turn), pause.get(), TimeUnit.MILLISECONDS);
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
