package io.kvcache.transport.net;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/// Frees what takes a while to free, such as mapped memory, in one thread for all of the process. So neither
/// the thread that ends something waits, nor does each end cost a thread.
///
/// **Threads.** Any gives work. One runs it, in order, and is never interrupted.
public final class CleanupThread {

    private static final ScheduledExecutorService EXECUTOR = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("kvcache-cleanup").factory());

    private CleanupThread() {}

    /// Runs some work soon.
    public static void execute(Runnable work) {
        EXECUTOR.execute(work);
    }

    /// Runs some work later, such as another attempt.
    public static void executeAfter(long nanos, Runnable work) {
        var _ = EXECUTOR.schedule(work, nanos, TimeUnit.NANOSECONDS);
    }
}
