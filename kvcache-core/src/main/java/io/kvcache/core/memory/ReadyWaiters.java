package io.kvcache.core.memory;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/// Callers that wait until a number of blocks of a table is ready, and their executors.
///
/// Executors are their owners', and one that was closed refuses. That is told to the caller that waits by it, whose
/// stage ends with what the executor threw, and never to the thread that brings blocks and has others to tell.
///
/// **Threads.** To be used under a lock of the table's, but for what [#takeReady] answers.
public final class ReadyWaiters {

    private final List<Waiter> waiting = new ArrayList<>();

    private record Waiter(int end, CompletableFuture<Integer> stage, Executor executor) {

        void complete(int ready) {
            try {
                var _ = stage.completeAsync(() -> ready, executor);
            } catch (RuntimeException | Error refused) {
                // Whatever hangs on the stage must not run here, where another caller may be waited for.
                var _ = CompletableFuture.runAsync(() -> stage.completeExceptionally(refused));
            }
        }
    }

    /// A caller waits.
    ///
    /// @param end block of the chain before which all have to be ready
    /// @return completes on the executor with the end of what is ready
    public CompletableFuture<Integer> add(int end, Executor executor) {
        CompletableFuture<Integer> stage = new CompletableFuture<>();
        waiting.add(new Waiter(end, stage, Objects.requireNonNull(executor)));
        return stage;
    }

    /// Returns whether any caller waits.
    public boolean hasWaiters() {
        return !waiting.isEmpty();
    }

    /// Takes out all callers that have waited for no more than is ready.
    ///
    /// @param last whether there will be no more, so that no caller goes on waiting
    /// @return tells them; to be run without the lock, and never throws because of an executor
    public Runnable takeReady(int ready, boolean last) {
        List<Waiter> satisfied = new ArrayList<>();
        waiting.removeIf(waiter -> (last || ready >= waiter.end) && satisfied.add(waiter));
        return () -> satisfied.forEach(waiter -> waiter.complete(ready));
    }
}
