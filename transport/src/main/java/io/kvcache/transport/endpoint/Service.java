package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.transport.wire.Status;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What all conversations of an endpoint share, but for the store.
///
/// @param cache that this conversation uses
/// @param later runs what may wait; it must not be bounded, as requests are bounded a session
/// @param common what all sessions have together
record Service(
        KvCache cache, EndpointOptions options, Counters counters, Executor later, Draining draining, Common common) {

    /// What all sessions have together.
    ///
    /// @param chains what they take of the heap
    /// @param snapshots few at a time
    record Common(HeapShare chains, Snapshots snapshots) {}

    /// The same for whoever may speak for one tenant only: with the store of its trust domain, if that has
    /// one, which is on no fabric.
    ///
    /// @param only null for who may speak for all
    Service of(@Nullable String only) {
        KvCache own = only == null ? null : options.domains().get(only);
        return own == null ? this : new Service(own, options.withFabric(null), counters, later, draining, common);
    }

    /// Does something that may wait, without holding up the connection, unless the session ends first.
    void later(Session session, Request request, Step step) throws Refused {
        later(session, request, 0, step);
    }

    /// The same.
    ///
    /// @param chainBytes of the heap that a chain keeps meanwhile
    void later(Session session, Request request, long chainBytes, Step step) throws Refused {
        begin(session, chainBytes);
        try {
            later.execute(() -> {
                try {
                    session.waits().run(() -> attempt(request, step));
                } finally {
                    end(session, chainBytes);
                }
            });
        } catch (RejectedExecutionException closed) {
            end(session, chainBytes);
            throw new Refused(Status.GONE, "the server is closed");
        }
    }

    /// Waits without a thread, and does something with what comes.
    ///
    /// @param then gets null when nothing comes
    <T> void later(Session session, Request request, Supplier<CompletionStage<@Nullable T>> wait, Then<T> then)
            throws Refused {
        begin(session, 0);
        boolean begun = false;
        try {
            CompletionStage<@Nullable T> stage = wait.get();
            begun = true;
            stage.whenComplete((found, failed) -> {
                try {
                    attempt(request, () -> then.run(found));
                } finally {
                    end(session, 0);
                }
            });
        } finally {
            if (!begun) {
                end(session, 0);
            }
        }
    }

    private void begin(Session session, long chainBytes) throws Refused {
        if (!common.chains.take(chainBytes)) {
            throw new Refused(Status.BUSY, ChainSlots.full(common.chains));
        }
        if (!session.waits().begin(options.most().waiting())) {
            common.chains.give(chainBytes);
            throw new Refused(
                    Status.BUSY,
                    "%d requests wait already; allowed: %1$d"
                            .formatted(options.most().waiting()));
        }
        counters.waiting.increment();
    }

    private void end(Session session, long chainBytes) {
        common.chains.give(chainBytes);
        counters.waiting.decrement();
        session.waits().end();
    }

    /// Does something for a request, and answers it when that fails.
    void attempt(Request request, Step step) {
        try {
            step.run();
        } catch (Refused refused) {
            request.refuse(refused);
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

    /// One thing to do with what has come, or with nothing.
    @FunctionalInterface
    interface Then<T> {
        void run(@Nullable T found) throws Refused;
    }
}
