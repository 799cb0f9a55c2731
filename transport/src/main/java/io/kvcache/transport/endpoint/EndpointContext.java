package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.endpoint.ChainCache.HeapBudget;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Status;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Shared by all connections of an endpoint. Each trust domain has a context with its own store.
///
/// @param executor runs what may wait; it must not be bounded, as each session bounds its requests
/// @param chains heap for the chains of all connections
/// @param rangeBuffers bytes for ranges of blocks that are left to all connections
/// @param coders for clients that ask for coded blocks
record EndpointContext(
        KvCache cache,
        EndpointOptions options,
        EndpointStats.Counters counters,
        Executor executor,
        GracefulShutdown gracefulShutdown,
        HeapBudget chains,
        Semaphore rangeBuffers,
        LinkCoders coders,
        SnapshotCursors snapshotCursors) {

    private static final System.Logger LOG = System.getLogger(EndpointContext.class.getName());

    /// The same for a client that may speak for one tenant only: with the store of its trust domain, if that has
    /// one, which is on no fabric.
    ///
    /// @param only null for a client that may speak for all
    EndpointContext forTenant(@Nullable String only) {
        KvCache own = only == null ? null : options.domains().get(only);
        return own == null ? this : with(own, options.withFabric(null));
    }

    private EndpointContext with(KvCache other, EndpointOptions otherOptions) {
        return new EndpointContext(
                other,
                otherOptions,
                counters,
                executor,
                gracefulShutdown,
                chains,
                rangeBuffers,
                coders,
                snapshotCursors);
    }

    /// The same for a client with these capabilities: one that wants what is here alone gets the store itself.
    EndpointContext forCapabilities(long capabilities) {
        EndpointOptions.ClusterAccess cluster = options.cluster();
        return cluster == null
                        || (capabilities & (Hello.LOCAL_ONLY | Hello.SERVER)) == 0
                        || options.domains().containsValue(cache)
                ? this
                : with(cluster.local(), options);
    }

    /// A client has read an object, or gets the answer that there is none.
    void onRead(ClientSession session, Namespace namespace, byte[] key, @Nullable ObjectView view) {
        if (session.isServer()) {
            return;
        }
        if (view != null) {
            options.listener().onHit(namespace, key, view.bytes());
        } else {
            boolean late = cache instanceof LocalKvCache local
                    && local.objects(namespace).contains(BlockKey.ofObject(namespace, key));
            options.listener().onMiss(namespace, key, late);
        }
    }

    /// A client that has asked whether an object is here gets the answer that it is not.
    void onAbsent(ClientSession session, Namespace namespace, byte[] key) {
        if (!session.isServer()) {
            options.listener().onMiss(namespace, key, false);
        }
    }

    /// @throws RequestException when the endpoint is draining: it begins nothing that has to be given back
    void requireNotDraining() throws RequestException {
        if (gracefulShutdown.isStarted()) {
            throw new RequestException(Status.BUSY, GracefulShutdown.REJECTION_MESSAGE);
        }
    }

    /// The memory that this session's client may map.
    SharedMemory requireSharedMemory(ClientSession session) throws RequestException {
        SharedMemory memory = sharedMemory();
        if (memory == null) {
            throw new RequestException(Status.UNSUPPORTED, "this server keeps its memory to itself");
        }
        if (!session.mayMap(memory)) {
            throw new RequestException(
                    Status.FORBIDDEN, "the memory is of another trust domain than \"" + session.onlyTenant() + "\"");
        }
        return memory;
    }

    /// The memory that clients on this host may map, or null when the store does not share any.
    @Nullable
    SharedMemory sharedMemory() {
        return cache instanceof LocalKvCache local ? local.sharedMemory() : null;
    }

    /// Does something that may wait, without holding up the connection, unless the session ends first.
    void later(ClientSession session, EndpointRequest request, RequestStep step) throws RequestException {
        later(session, request, null, step);
    }

    /// The same.
    ///
    /// @param chain what is kept meanwhile
    void later(
            ClientSession session, EndpointRequest request, ChainCache.@Nullable RetainedChain chain, RequestStep step)
            throws RequestException {
        begin(session, chain);
        try {
            executor.execute(() -> {
                try {
                    session.pendingRequests().run(() -> runOrReject(request, step));
                } finally {
                    end(session, chain);
                }
            });
        } catch (RejectedExecutionException closed) {
            end(session, chain);
            throw new RequestException(Status.GONE, "the server is closed");
        }
    }

    /// Does something that may wait, and holds up the connection meanwhile: for requests of clients that send the
    /// next one after the reply. It spares them another thread.
    void here(ClientSession session, EndpointRequest request, RequestStep step) throws RequestException {
        begin(session, null);
        try {
            session.pendingRequests().run(() -> runOrReject(request, step));
        } finally {
            end(session, null);
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
        begin(session, null);
        boolean begun = false;
        try {
            CompletionStage<@Nullable T> stage = wait.get();
            begun = true;
            stage.whenComplete((found, failed) -> {
                try {
                    runOrReject(request, () -> resultStep.run(found));
                } finally {
                    end(session, null);
                }
            });
        } finally {
            if (!begun) {
                end(session, null);
            }
        }
    }

    private void begin(ClientSession session, ChainCache.@Nullable RetainedChain chain) throws RequestException {
        if (chain != null && !chain.begin()) {
            throw RequestException.forChain(Status.BUSY, ChainCache.budgetFullMessage(chains));
        }
        if (!session.pendingRequests().tryBegin(options.limits().pendingRequests())) {
            endRetention(chain);
            throw new RequestException(
                    Status.BUSY,
                    "%s requests wait already; allowed: %1$s"
                            .formatted(options.limits().pendingRequests()));
        }
        counters.waiting.increment();
    }

    private void end(ClientSession session, ChainCache.@Nullable RetainedChain chain) {
        endRetention(chain);
        counters.waiting.decrement();
        session.pendingRequests().end();
    }

    private static void endRetention(ChainCache.@Nullable RetainedChain chain) {
        if (chain != null) {
            chain.end();
        }
    }

    /// Does something for a request, and answers it when that fails.
    void runOrReject(EndpointRequest request, RequestStep step) {
        try {
            step.run();
        } catch (RequestException | RuntimeException failed) {
            reject(request, failed);
        }
    }

    /// Answers a request that failed.
    void reject(EndpointRequest request, Exception failure) {
        switch (failure) {
            case RequestException refused -> request.reject(refused);
            case IllegalArgumentException wrong -> request.reject(Status.INVALID, String.valueOf(wrong.getMessage()));
            case IndexOutOfBoundsException wrong -> request.reject(Status.INVALID, String.valueOf(wrong.getMessage()));
            default -> {
                LOG.log(System.Logger.Level.WARNING, request.type() + " of a remote client failed", failure);
                request.reject(Status.FAILED, String.valueOf(failure.getMessage()));
            }
        }
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

    /// How an endpoint goes down: nothing new begins, what has begun goes on, and it is over when no client has
    /// gone on for a moment.
    ///
    /// The moment is for a client that has heard of its blocks and is about to ask for them, or that fills memory
    /// that it is about to send.
    ///
    /// **Threads.** Any.
    static final class GracefulShutdown {

        static final String REJECTION_MESSAGE = "this server is going down";

        private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

        private volatile boolean started;
        private volatile long lastActivityNanos;

        void begin(long nowNanos) {
            lastActivityNanos = nowNanos;
            started = true;
        }

        boolean isStarted() {
            return started;
        }

        /// Something that had begun is under way.
        void onActivity(long nowNanos) {
            lastActivityNanos = nowNanos;
        }

        /// Returns whether the endpoint has been idle for a while.
        boolean isIdle(long nowNanos) {
            return started && nowNanos - lastActivityNanos > IDLE_NANOS;
        }
    }
}
