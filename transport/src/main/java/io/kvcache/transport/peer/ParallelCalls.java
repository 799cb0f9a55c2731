package io.kvcache.transport.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Calls that run at the same time, and a caller that takes their results.
///
/// **Threads.** One adds calls and takes the results; the executor runs what is not left to it.
///
/// @param <T> result of a call
final class ParallelCalls<T> {

    private final Executor executor;
    private final PeerClock clock;
    private final List<Call<T>> calls = new ArrayList<>();

    /// @param executor runs the calls of [#start]
    ParallelCalls(Executor executor, PeerClock clock) {
        this.executor = executor;
        this.clock = clock;
    }

    /// Begins a call on another thread.
    void start(Supplier<T> what) {
        Call<T> call = new Call<>(what, clock);
        calls.add(call);
        try {
            executor.execute(call);
            call.isStarted = true;
        } catch (RejectedExecutionException closing) {
            // It stays for the thread that takes the results.
        }
    }

    /// Leaves a call to the thread that takes the results.
    void addOwn(Supplier<T> what) {
        calls.add(new Call<>(what, clock));
    }

    /// Runs the calls that are left to this thread, waits for the others, and returns all results in the order of the
    /// calls.
    ///
    /// @param close closes the results of the others when one call has thrown, which this throws again
    List<T> results(Consumer<T> close) {
        calls.stream().filter(call -> !call.isStarted).forEach(Call::run);
        List<T> results = new ArrayList<>();
        @Nullable RuntimeException failed = null;
        for (Call<T> call : calls) {
            try {
                results.add(call.await());
            } catch (RuntimeException thrown) {
                failed = thrown;
            }
        }
        if (failed != null) {
            results.forEach(close);
            throw failed;
        }
        return results;
    }

    /// A call and its result.
    private static final class Call<T> implements Runnable {

        private final Supplier<T> what;
        private final PeerClock clock;

        /// Of the thread that takes the results.
        private boolean isStarted;

        private @Nullable Outcome<T> outcome;

        /// What it returned, or what it threw.
        private record Outcome<T>(
                @Nullable T result, @Nullable Throwable failure) {}

        Call(Supplier<T> what, PeerClock clock) {
            this.what = what;
            this.clock = clock;
        }

        @Override
        public void run() {
            Outcome<T> found;
            try {
                found = new Outcome<>(what.get(), null);
            } catch (RuntimeException | Error thrown) {
                found = new Outcome<>(null, thrown);
            }
            synchronized (this) {
                outcome = found;
                clock.wake(this);
            }
        }

        /// Waits for the end, which its own timeouts bring about: an interrupt is kept for later.
        @SuppressWarnings("NullAway") // without a failure there is a result, perhaps null where T allows that
        T await() {
            Outcome<T> found = awaitOutcome();
            if (found.failure instanceof Error error) {
                throw error;
            }
            if (found.failure instanceof RuntimeException thrown) {
                throw thrown;
            }
            return found.result;
        }

        private Outcome<T> awaitOutcome() {
            long never = clock.deadlineAfter(Long.MAX_VALUE);
            boolean interrupted = false;
            Outcome<T> found = null;
            while (found == null) {
                try {
                    synchronized (this) {
                        if (outcome == null) {
                            clock.await(this, never);
                        }
                        found = outcome;
                    }
                } catch (InterruptedException stopped) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            return found;
        }
    }
}
