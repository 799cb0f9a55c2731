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
        later(session, request, Hold.NONE, step);
    }

    /// The same.
    ///
    /// @param hold what is kept meanwhile
    void later(Session session, Request request, Hold hold, Step step) throws Refused {
        begin(session, hold);
        try {
            later.execute(() -> {
                try {
                    session.waits().run(() -> attempt(request, step));
                } finally {
                    end(session, hold);
                }
            });
        } catch (RejectedExecutionException closed) {
            end(session, hold);
            throw new Refused(Status.GONE, "the server is closed");
        }
    }

    /// Waits without a thread, and does something with what comes.
    ///
    /// @param then gets null when nothing comes
    <T> void later(Session session, Request request, Supplier<CompletionStage<@Nullable T>> wait, Then<T> then)
            throws Refused {
        begin(session, Hold.NONE);
        boolean begun = false;
        try {
            CompletionStage<@Nullable T> stage = wait.get();
            begun = true;
            stage.whenComplete((found, failed) -> {
                try {
                    attempt(request, () -> then.run(found));
                } finally {
                    end(session, Hold.NONE);
                }
            });
        } finally {
            if (!begun) {
                end(session, Hold.NONE);
            }
        }
    }

    private void begin(Session session, Hold hold) throws Refused {
        if (!hold.begin()) {
            throw Refused.ofChain(Status.BUSY, ChainSlots.full(common.chains));
        }
        if (!session.waits().begin(options.most().waiting())) {
            hold.end();
            throw new Refused(
                    Status.BUSY,
                    "%d requests wait already; allowed: %1$d"
                            .formatted(options.most().waiting()));
        }
        counters.waiting.increment();
    }

    private void end(Session session, Hold hold) {
        hold.end();
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

    /// Heap that a request keeps while it waits.
    interface Hold {

        /// For those that keep none.
        Hold NONE = new Hold() {

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
    interface Step {
        void run() throws Refused;
    }

    /// One thing to do with what has come, or with nothing.
    @FunctionalInterface
    interface Then<T> {
        void run(@Nullable T found) throws Refused;
    }
}
