package io.kvcache.tiers;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Runs something after a while. Once it is cancelled nothing holds on to it any more, and it never runs again.
///
/// **Threads.** Any.
final class DelayedTask {

    private final Runnable action;
    private @Nullable CompletableFuture<Void> pending;
    private boolean cancelled;

    DelayedTask(Runnable then) {
        this.action = then;
    }

    /// Sets it, unless it is set already.
    synchronized void schedule(long nanos) {
        if (pending != null || cancelled) {
            return;
        }
        CompletableFuture<Void> timer = new CompletableFuture<>();
        pending = timer;
        var _ = timer.thenRunAsync(this::fire);
        // A future that ends before its time takes its task out of the JVM's queue of delayed tasks.
        var _ = timer.completeOnTimeout(null, nanos, TimeUnit.NANOSECONDS);
    }

    private void fire() {
        synchronized (this) {
            if (cancelled) {
                return;
            }
            pending = null;
        }
        action.run();
    }

    void cancel() {
        CompletableFuture<Void> timer;
        synchronized (this) {
            cancelled = true;
            timer = pending;
            pending = null;
        }
        if (timer != null) {
            timer.cancel(false);
        }
    }
}
