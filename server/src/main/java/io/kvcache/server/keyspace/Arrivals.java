package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Values that are on disk alone, and their way into host memory.
///
/// **Threads.** Any.
final class Arrivals {

    private final Ground ground;
    private final long timeoutNanos;

    /// @param timeout how long a value may take; zero in a store without disks
    Arrivals(Ground ground, Duration timeout) {
        this.ground = ground;
        timeoutNanos = timeout.toNanos();
    }

    /// Whether a value that was not found in host memory is on disk.
    boolean isAway(Key key) {
        return timeoutNanos > 0 && ground.stores(key);
    }

    /// Has a value brought in.
    ///
    /// The store completes on its own thread, which must never be one that a loop refuses to run: the view would be
    /// lost, and its pin with it. So the hop to the executor is made here, where it can be given back.
    ///
    /// @param mostNanos how long it may take, if the store allows as long
    /// @param then gets the view, or null; not run when the executor takes nothing any more
    void fetch(Key key, long mostNanos, Executor executor, Consumer<@Nullable ObjectView> then) {
        ground.cache()
                .fetchObject(ground.namespace(), key.bytes(), Math.min(mostNanos, timeoutNanos), Runnable::run)
                .whenComplete((view, _) -> handOver(view, executor, then));
    }

    private static void handOver(@Nullable ObjectView view, Executor executor, Consumer<@Nullable ObjectView> then) {
        try {
            executor.execute(() -> then.accept(view));
        } catch (RejectedExecutionException ended) {
            if (view != null) {
                view.close();
            }
        }
    }
}
