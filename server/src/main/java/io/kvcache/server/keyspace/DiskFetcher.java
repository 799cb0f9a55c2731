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
final class DiskFetcher {

    private final KeyspaceContext keyspaceContext;
    private final long timeoutNanos;

    /// @param timeout how long a value may take; zero in a store without disks
    DiskFetcher(KeyspaceContext keyspaceContext, Duration timeout) {
        this.keyspaceContext = keyspaceContext;
        timeoutNanos = timeout.toNanos();
    }

    /// Whether a value that was not found in host memory is on disk.
    boolean isOnDisk(Key key) {
        return timeoutNanos > 0 && keyspaceContext.isStored(key);
    }

    /// Has a value brought in.
    ///
    /// The store completes on its own thread, which must never be one that a loop refuses to run: the view would be
    /// lost, and its pin with it. So the hop to the executor is made here, where it can be given back.
    ///
    /// @param maxNanos how long it may take, if the store allows as long
    /// @param callback gets the view, or null; not run when the executor takes nothing any more
    void fetch(Key key, long maxNanos, Executor executor, Consumer<@Nullable ObjectView> callback) {
        keyspaceContext
                .cache()
                .fetchObject(
                        keyspaceContext.namespace(),
                        key.bytes(),
                        Duration.ofNanos(Math.min(maxNanos, timeoutNanos)),
                        Runnable::run)
                .whenComplete((view, _) -> deliver(view, executor, callback));
    }

    private static void deliver(@Nullable ObjectView view, Executor executor, Consumer<@Nullable ObjectView> callback) {
        try {
            executor.execute(() -> callback.accept(view));
        } catch (RejectedExecutionException ended) {
            if (view != null) {
                view.close();
            }
        }
    }
}
