package io.kvcache.transport.remote;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;

/// Small questions over the connection that carries many.
final class RpcClient {

    private final RemoteCacheContext remoteCacheContext;

    RpcClient(RemoteCacheContext remoteCacheContext) {
        this.remoteCacheContext = remoteCacheContext;
    }

    /// Asks; a failure is counted and answered by a value.
    ///
    /// @throws IllegalArgumentException when the server finds the question wrong
    <T> T callOrDefault(T defaultValue, SessionCall<T> call) {
        try {
            return remoteCacheContext.sessions().call(call);
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            if (failed.hasReply() && failed.status() == Status.INVALID) {
                throw new IllegalArgumentException(failed.getMessage());
            }
            return defaultValue;
        }
    }

    /// One question to one session.
    @FunctionalInterface
    interface SessionCall<T> {
        T call(RemoteSession remoteSession) throws RpcException;
    }

    /// Asks what has no answer without the server.
    ///
    /// @throws UncheckedIOException when there is none
    <T> T callOrThrow(SessionCall<T> call) {
        try {
            return remoteCacheContext.sessions().call(call);
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            if (failed.hasReply() && failed.status() == Status.INVALID) {
                throw new IllegalArgumentException(failed.getMessage());
            }
            throw new UncheckedIOException(new IOException(failed.getMessage()));
        }
    }

    /// Asks about a chain.
    ///
    /// @param timeoutNanos how long the server itself may wait
    /// @param late what becomes of an answer that nobody waits for any more
    <T> SessionCall<T> chainCall(
            BlockChain chain, long timeoutNanos, Function<BodyWriter, CallSpec<T>> asked, Consumer<T> late) {
        long patience = remoteCacheContext.options().totalTimeoutNanos(timeoutNanos);
        return remoteSession -> {
            int number = remoteSession.namespaceNumber(chain.namespace());
            // If there was no room, the server may have given up the chain: it is told again then.
            return RetryOnce.run(
                    patience,
                    failed -> failed.isBusy() && failed.mayConcernChain(),
                    left -> ControlConnection.await(
                            remoteSession.control().call(chain, number, body -> {
                                CallSpec<T> rest = asked.apply(body);
                                return new ControlConnection.CallRequest<>(rest.type, body, rest.parser, left);
                            }),
                            left,
                            late));
        };
    }

    /// What is asked, and how to read the answer.
    record CallSpec<T>(MessageType type, ControlConnection.ReplyParser<T> parser) {}

    /// How long a request may take.
    long requestTimeoutNanos() {
        return remoteCacheContext.options().requestTimeoutNanos();
    }

    /// Asks a second time, within the time of the first, where that may help.
    static final class RetryOnce {

        private RetryOnce() {}

        /// One try.
        @FunctionalInterface
        interface Attempt<T> {

            /// Asks.
            ///
            /// @param nanos that are left for it
            T run(long nanos) throws RpcException;
        }

        /// @param isRetryable whether it may help after this failure; asked once
        static <T> T run(long patienceNanos, Predicate<RpcException> isRetryable, Attempt<T> attempt)
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
    }
}
