package io.kvcache.transport.client;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Predicate;

/// Shared by all reads, writes, tables, views and writers of one remote cache: requests to the server, memory and
/// counters.
///
/// @param openHandles tables with blocks, views and writers
/// @param coding decides whether blocks come coded
/// @param fetchExecutor reads what arrives later
record RemoteContext(
        SessionKeeper keeper,
        RemoteOptions options,
        ReceiveBuffers buffers,
        RemoteStats.Counters counters,
        AtomicInteger openHandles,
        LinkCoding coding,
        ExecutorService fetchExecutor) {

    /// A call to one session.
    @FunctionalInterface
    interface SessionCall<T> {
        T call(RemoteSession session) throws RpcException;
    }

    /// Makes a call. After a failure, counts it and returns a default value.
    ///
    /// @throws IllegalArgumentException when the server finds the question wrong
    <T> T callOrDefault(T defaultValue, SessionCall<T> call) {
        try {
            return keeper.call(call);
        } catch (RpcException failed) {
            onFailure(failed);
            return defaultValue;
        }
    }

    /// Makes a call that has no result without the server.
    ///
    /// @throws UncheckedIOException when there is none
    <T> T callOrThrow(SessionCall<T> call) {
        try {
            return keeper.call(call);
        } catch (RpcException failed) {
            onFailure(failed);
            throw new UncheckedIOException(new IOException(failed.getMessage()));
        }
    }

    /// Counts a failure.
    ///
    /// @throws IllegalArgumentException when the server found the question wrong
    void onFailure(RpcException failed) {
        countFailure();
        if (failed.hasReply() && failed.status() == Status.INVALID) {
            throw new IllegalArgumentException(failed.getMessage());
        }
    }

    /// Counts a failed call, but not one whose caller was interrupted: the server has not failed then, and a
    /// cluster goes on to use it.
    void countFailure() {
        if (!Thread.currentThread().isInterrupted()) {
            counters.failed.increment();
        }
    }

    /// Returns a call about a chain.
    ///
    /// @param timeoutNanos how long the server itself may wait
    /// @param late what becomes of an answer that comes too late
    <T> SessionCall<T> chainCall(ChainCall<T> call, long timeoutNanos, Consumer<T> late) {
        long patience = options.totalTimeoutNanos(timeoutNanos);
        return session -> {
            int number = session.namespaceNumber(call.chain.namespace());
            // If there was no room, the server may have dropped the chain. The retry defines it again.
            return retryOnce(
                    patience,
                    failed -> failed.isBusy() && failed.mayConcernChain(),
                    left -> ControlConnection.await(session.control().call(call, number, left), left, late));
        };
    }

    /// Returns a call about a chain that the server answers at once.
    <T> SessionCall<T> chainCall(ChainCall<T> call) {
        return chainCall(call, 0, late -> {});
    }

    /// A request about a chain.
    ///
    /// @param rest writes what comes after the chain
    /// @param parser reads the answer
    record ChainCall<T>(
            MessageType type, BlockChain chain, Consumer<BodyWriter> rest, ControlConnection.ReplyParser<T> parser) {}

    /// One attempt, with its timeout.
    @FunctionalInterface
    interface Attempt<T> {
        T run(long nanos) throws RpcException;
    }

    /// Retries once, within the timeout of the first attempt, if that may help.
    ///
    /// @param isRetryable whether it may help after this failure; asked once
    static <T> T retryOnce(long patienceNanos, Predicate<RpcException> isRetryable, Attempt<T> attempt)
            throws RpcException {
        long start = System.nanoTime();
        try {
            return attempt.run(patienceNanos);
        } catch (RpcException failed) {
            long left = patienceNanos - (System.nanoTime() - start);
            if (!isRetryable.test(failed) || left <= 0) {
                throw failed;
            }
            return attempt.run(left);
        }
    }

    /// A request without a reply, or with a refusal.
    static final class RpcException extends Exception {

        private static final long serialVersionUID = 1L;

        private final boolean hasReply;
        private final Status status;
        private final boolean mayConcernChain;

        private RpcException(boolean answered, Status status, String text, boolean perhapsOfChain) {
            super(text, null, false, false);
            this.hasReply = answered;
            this.status = status;
            this.mayConcernChain = perhapsOfChain;
        }

        static RpcException rejected(Status status, String text) {
            return new RpcException(true, status, text, false);
        }

        /// Reads a refusal: `text`, then whether the chain is the reason, which older servers do not send.
        static RpcException rejected(Status status, BodyReader body) throws ProtocolException {
            String text = body.text("text");
            boolean chains = status == Status.BUSY || status == Status.INVALID;
            return new RpcException(
                    true, status, text, chains && (!body.hasRemaining() || body.u8("of the chain") != 0));
        }

        static RpcException noReply(String why) {
            return new RpcException(false, Status.FAILED, why, false);
        }

        /// Returns whether the server may lack the chain that the request refers to.
        boolean mayConcernChain() {
            return mayConcernChain;
        }

        /// Returns whether the server replied with a refusal; else there was no reply.
        boolean hasReply() {
            return hasReply;
        }

        /// Returns whether the server had no room. A retry may succeed.
        boolean isBusy() {
            return hasReply && status == Status.BUSY;
        }

        Status status() {
            return status;
        }
    }
}
