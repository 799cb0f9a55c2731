package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.transport.wire.Status;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/// What all conversations of an endpoint share, but for the store.
///
/// @param cache that this conversation uses
/// @param later runs what may wait; it must not be bounded, as requests are bounded a session
record Service(
        KvCache cache, EndpointOptions options, Counters counters, Executor later, Draining draining, PinOwners pins) {

    /// The same for whoever may speak for one tenant only: with the store of its trust domain, if that has
    /// one, which is on no fabric.
    ///
    /// @param only null for who may speak for all
    Service of(@Nullable String only) {
        KvCache own = only == null ? null : options.domains().get(only);
        return own == null ? this : new Service(own, options.withFabric(null), counters, later, draining, pins);
    }

    /// Does something that may wait, without holding up the connection.
    void later(Session session, Request request, Step step) throws Refused {
        if (session.waiting().incrementAndGet() > options.maxWaiting()) {
            session.waiting().decrementAndGet();
            throw new Refused(Status.BUSY, "%d requests wait already; allowed: %1$d".formatted(options.maxWaiting()));
        }
        counters.waiting.increment();
        try {
            later.execute(() -> {
                try {
                    attempt(request, step);
                } finally {
                    waitsNoMore(session);
                }
            });
        } catch (RejectedExecutionException closed) {
            waitsNoMore(session);
            throw new Refused(Status.GONE, "the server is closed");
        }
    }

    private void waitsNoMore(Session session) {
        counters.waiting.decrement();
        session.waiting().decrementAndGet();
    }

    /// Does something for a request, and answers it when that fails.
    void attempt(Request request, Step step) {
        try {
            step.run();
        } catch (Refused refused) {
            request.refuse(refused.status(), String.valueOf(refused.getMessage()));
        } catch (IllegalArgumentException | IndexOutOfBoundsException wrong) {
            request.refuse(Status.INVALID, String.valueOf(wrong.getMessage()));
        } catch (RuntimeException failed) {
            System.getLogger(Service.class.getName())
                    .log(System.Logger.Level.WARNING, request.type() + " of a remote client failed", failed);
            request.refuse(Status.FAILED, String.valueOf(failed.getMessage()));
        }
    }

    /// One thing to do for a request.
    @FunctionalInterface
    interface Step {
        void run() throws Refused;
    }
}
