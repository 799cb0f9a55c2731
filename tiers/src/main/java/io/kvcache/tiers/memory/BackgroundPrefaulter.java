package io.kvcache.tiers.memory;

import java.time.Duration;

/// A thread around a [PagePrefaulter], that ends when all is touched.
///
/// **Ownership.** Who starts it closes it, before the memory.
public final class BackgroundPrefaulter implements AutoCloseable {

    /// Closing waits for one step: 5 ms on a quiet machine, 110 ms where the host pages (14 s a GiB).
    private static final long STEP_BYTES = 8 << 20;

    private final PagePrefaulter toucher;
    private final Thread thread;
    private volatile boolean closing;

    private BackgroundPrefaulter(PagePrefaulter toucher, String purpose) {
        this.toucher = toucher;
        this.thread =
                Thread.ofPlatform().daemon().name("kvcache-touch-" + purpose).unstarted(this::run);
    }

    /// Starts touching.
    ///
    /// @param purpose one word for the name of the thread
    public static BackgroundPrefaulter start(PagePrefaulter toucher, String purpose) {
        BackgroundPrefaulter started = new BackgroundPrefaulter(toucher, purpose);
        started.thread.start();
        return started;
    }

    /// The part that has been touched, from 0.0 to 1.0.
    public double progress() {
        return toucher.progress();
    }

    /// Waits until all is touched, or the thread has stopped for another reason.
    ///
    /// @return whether all is touched
    public boolean await(Duration timeout) throws InterruptedException {
        return thread.join(timeout) && progress() == 1.0;
    }

    /// Stops after the step at hand and waits for that. May be called again.
    @Override
    public void close() {
        closing = true;
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException asked) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        toucher.lowerPriority();
        boolean more = true;
        while (more && !closing) {
            more = toucher.prefaultNext(STEP_BYTES) > 0;
        }
    }
}
