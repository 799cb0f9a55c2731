package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.wire.Status;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What all conversations of an endpoint share, but for the store.
///
/// @param cache that this conversation uses
/// @param executor runs what may wait; it must not be bounded, as requests are bounded a session
/// @param shared what all sessions have together
record EndpointContext(
        KvCache cache,
        EndpointOptions options,
        EndpointStats.Counters counters,
        Executor executor,
        GracefulShutdown gracefulShutdown,
        SharedState shared) {

    /// What all sessions have together.
    ///
    /// @param chains what they take of the heap
    /// @param snapshotCursors few at a time
    record SharedState(HeapBudget chains, SnapshotCursors snapshotCursors) {}

    /// The same for whoever may speak for one tenant only: with the store of its trust domain, if that has
    /// one, which is on no fabric.
    ///
    /// @param only null for who may speak for all
    EndpointContext forTenant(@Nullable String only) {
        KvCache own = only == null ? null : options.domains().get(only);
        return own == null
                ? this
                : new EndpointContext(own, options.withFabric(null), counters, executor, gracefulShutdown, shared);
    }

    /// The memory that clients on this host may map, or null when the store does not share any.
    @Nullable
    SharedMemory sharedMemory() {
        return cache instanceof LocalKvCache local ? local.sharedMemory() : null;
    }

    /// Does something that may wait, without holding up the connection, unless the session ends first.
    void later(ClientSession session, EndpointRequest request, RequestStep step) throws RequestException {
        later(session, request, HeapReservation.NONE, step);
    }

    /// The same.
    ///
    /// @param heapReservation what is kept meanwhile
    void later(ClientSession session, EndpointRequest request, HeapReservation heapReservation, RequestStep step)
            throws RequestException {
        begin(session, heapReservation);
        try {
            executor.execute(() -> {
                try {
                    session.pendingRequests().run(() -> runOrReject(request, step));
                } finally {
                    end(session, heapReservation);
                }
            });
        } catch (RejectedExecutionException closed) {
            end(session, heapReservation);
            throw new RequestException(Status.GONE, "the server is closed");
        }
    }

    /// Waits without a thread, and does something with what comes.
    ///
    /// @param resultStep gets null when nothing comes
    <T> void later(
            ClientSession session,
            EndpointRequest request,
            Supplier<CompletionStage<@Nullable T>> wait,
            ResultStep<T> resultStep)
            throws RequestException {
        begin(session, HeapReservation.NONE);
        boolean begun = false;
        try {
            CompletionStage<@Nullable T> stage = wait.get();
            begun = true;
            stage.whenComplete((found, failed) -> {
                try {
                    runOrReject(request, () -> resultStep.run(found));
                } finally {
                    end(session, HeapReservation.NONE);
                }
            });
        } finally {
            if (!begun) {
                end(session, HeapReservation.NONE);
            }
        }
    }

    private void begin(ClientSession session, HeapReservation heapReservation) throws RequestException {
        if (!heapReservation.begin()) {
            throw RequestException.forChain(Status.BUSY, ChainCache.budgetFullMessage(shared.chains));
        }
        if (!session.pendingRequests().tryBegin(options.limits().pendingRequests())) {
            heapReservation.end();
            throw new RequestException(
                    Status.BUSY,
                    "%d requests wait already; allowed: %1$d"
                            .formatted(options.limits().pendingRequests()));
        }
        counters.waiting.increment();
    }

    private void end(ClientSession session, HeapReservation heapReservation) {
        heapReservation.end();
        counters.waiting.decrement();
        session.pendingRequests().end();
    }

    /// Does something for a request, and answers it when that fails.
    void runOrReject(EndpointRequest request, RequestStep step) {
        try {
            step.run();
        } catch (RequestException requestException) {
            request.reject(requestException);
        } catch (IllegalArgumentException | IndexOutOfBoundsException wrong) {
            request.reject(Status.INVALID, String.valueOf(wrong.getMessage()));
        } catch (RuntimeException failed) {
            System.getLogger(EndpointContext.class.getName())
                    .log(System.Logger.Level.WARNING, request.type() + " of a remote client failed", failed);
            request.reject(Status.FAILED, String.valueOf(failed.getMessage()));
        }
    }

    /// Heap that a request keeps while it waits.
    interface HeapReservation {

        /// For those that keep none.
        HeapReservation NONE = new HeapReservation() {

            @Override
            public boolean begin() {
                return true;
            }

            @Override
            public void end() {
                // Nothing to give back.
            }
        };

        /// Takes it; answers whether there was room.
        boolean begin();

        /// Gives back what was taken.
        void end();
    }

    /// One thing to do for a request.
    @FunctionalInterface
    interface RequestStep {
        void run() throws RequestException;
    }

    /// One thing to do with what has come, or with nothing.
    @FunctionalInterface
    interface ResultStep<T> {
        void run(@Nullable T found) throws RequestException;
    }
}
