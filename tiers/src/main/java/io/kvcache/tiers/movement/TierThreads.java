package io.kvcache.tiers.movement;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// One platform thread a tier, which drives its movement: the device below knows its owner.
///
/// **Threads.** Any may close, once.
public final class TierThreads implements AutoCloseable {

    private static final Logger LOG = System.getLogger(TierThreads.class.getName());

    /// How long a thread with nothing to do waits at first; loads and flushes end the wait, new writes may wait so
    /// long. While something is on its way to the device the wait is the device's; else there is nothing to wait
    /// for there, and the thread parks.
    private static final long WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    /// And how long after it has had nothing to do for a while: each waking costs some 7 us, which at 2 ms is a
    /// third of a percent of a core for an idle server.
    private static final long IDLE_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(8);

    /// Waits until then.
    private static final int IDLE_AFTER_WAITS = 100;

    private final TierScheduler tierScheduler;
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean ending;

    private TierThreads(TierScheduler tierScheduler) {
        this.tierScheduler = tierScheduler;
    }

    /// Opens all tiers, each by its own thread, and returns once all of them serve.
    ///
    /// @throws RuntimeException when one is refused; then none is left open
    public static TierThreads start(TierScheduler tierScheduler) {
        TierThreads started = new TierThreads(tierScheduler);
        List<CompletableFuture<Void>> opened = new ArrayList<>();
        for (int disk = 0; disk < tierScheduler.tierCount(); disk++) {
            CompletableFuture<Void> open = new CompletableFuture<>();
            int number = disk;
            Thread thread = Thread.ofPlatform()
                    .daemon(true)
                    .name("kvcache-disk-" + disk)
                    .unstarted(() -> started.run(number, open));
            started.threads.add(thread);
            opened.add(open);
            thread.start();
        }
        try {
            opened.forEach(CompletableFuture::join);
        } catch (CompletionException refused) {
            started.close();
            if (refused.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw refused;
        }
        return started;
    }

    private void run(int disk, CompletableFuture<Void> opened) {
        tierScheduler.setDriver(disk, Thread.currentThread());
        try {
            tierScheduler.open(disk);
            opened.complete(null);
        } catch (RuntimeException | Error refused) {
            opened.completeExceptionally(refused);
            return;
        }
        try {
            int waits = 0;
            while (!ending) {
                boolean idle = tierScheduler.tick(disk, WAIT_NANOS) == 0 && tierScheduler.isWaiting(disk);
                waits = idle ? waits + 1 : 0;
                if (idle) {
                    LockSupport.parkNanos(this, waits < IDLE_AFTER_WAITS ? WAIT_NANOS : IDLE_WAIT_NANOS);
                }
            }
        } catch (RuntimeException | Error bug) {
            LOG.log(Level.ERROR, "the thread of disk " + disk + " ended", bug);
        } finally {
            tierScheduler.close(disk);
        }
    }

    /// Ends all threads, which let go of their tiers.
    @Override
    public void close() {
        ending = true;
        boolean interrupted = false;
        for (int disk = 0; disk < threads.size(); disk++) {
            tierScheduler.wake(disk);
            try {
                threads.get(disk).join();
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
