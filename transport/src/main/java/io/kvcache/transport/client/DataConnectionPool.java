package io.kvcache.transport.client;

import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import java.io.IOException;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/// The block connections of one session. It opens them when they are needed, up to a limit, and lends the one used
/// last first.
final class DataConnectionPool {

    private final Connector connector;
    private final RemoteOptions options;
    private final CallTimeouts callTimeouts;
    private final Welcome session;
    private final ReleaseQueue releaseQueue;
    private final LongAdder heard;
    private final Semaphore permits;
    private final ConcurrentLinkedDeque<DataConnection> idle = new ConcurrentLinkedDeque<>();
    private volatile boolean closed;

    /// @param heard counts the uses in which the server has answered
    DataConnectionPool(
            Connector connector,
            RemoteOptions options,
            CallTimeouts callTimeouts,
            ReleaseQueue releaseQueue,
            Welcome session,
            LongAdder heard) {
        this.connector = connector;
        this.options = options;
        this.callTimeouts = callTimeouts;
        this.releaseQueue = releaseQueue;
        this.session = session;
        this.heard = heard;
        // Not fair: a thread that runs takes the connection that it has just given back, where handing it to the
        // next would leave it idle until that has woken up.
        permits = new Semaphore(options.connections());
    }

    /// A use of a connection.
    @FunctionalInterface
    interface ConnectionTask {

        /// Uses the connection.
        ///
        /// @param timeoutNanos what is left of the time that the use may take
        void run(DataConnection line, long timeoutNanos) throws RpcException;
    }

    /// Lends a connection for one use. The request timeout covers the waits for a free connection, for its opening
    /// and for the answer together.
    void withConnection(ConnectionTask task) throws RpcException {
        withConnection(deadlineNanos(), task);
    }

    /// Returns the deadline of a request that begins now, by `System.nanoTime()`.
    long deadlineNanos() {
        return System.nanoTime() + options.requestTimeoutNanos();
    }

    /// Lends a connection for one use with a deadline.
    void withConnection(long untilNanos, ConnectionTask task) throws RpcException {
        acquirePermit(untilNanos);
        try {
            DataConnection line = idle.pollFirst();
            if (line == null || !line.isOpen()) {
                line = open(remainingNanos(untilNanos));
            }
            withConnection(line, untilNanos, task);
        } finally {
            permits.release();
        }
    }

    /// Sends a request and returns the parsed reply, which is one frame without payload.
    <T> T call(long untilNanos, MessageType type, BodyWriter body, ControlConnection.ReplyParser<T> parser)
            throws RpcException {
        return call(untilNanos, type, body, Payload.NONE, parser);
    }

    /// The same, for a request that has a payload.
    <T> T call(
            long untilNanos,
            MessageType type,
            BodyWriter body,
            Payload payload,
            ControlConnection.ReplyParser<T> parser)
            throws RpcException {
        DataConnection.SingleReply<T> reply = new DataConnection.SingleReply<>(parser);
        withConnection(untilNanos, (line, patience) -> line.call(type, body, payload, patience, reply));
        return reply.value();
    }

    private static long remainingNanos(long untilNanos) throws RpcException {
        long left = untilNanos - System.nanoTime();
        if (left <= 0) {
            throw RpcException.noReply("the timeout passed before the request was sent");
        }
        return left;
    }

    private void withConnection(DataConnection line, long untilNanos, ConnectionTask task) throws RpcException {
        boolean good = true;
        try {
            long left = remainingNanos(untilNanos);
            good = false; // what ends it from here on, but an answer, ends the connection
            task.run(line, left);
            good = true;
        } catch (RpcException failed) {
            good |= failed.hasReply();
            throw failed;
        } finally {
            if (good) {
                heard.increment();
            }
            if (good && line.isOpen()) {
                idle.addFirst(line);
            } else {
                line.close();
            }
            if (closed) {
                close();
            }
        }
    }

    private void acquirePermit(long untilNanos) throws RpcException {
        try {
            if (!permits.tryAcquire(untilNanos - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                throw RpcException.noReply("all connections are busy");
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw RpcException.noReply("interrupted");
        }
    }

    private DataConnection open(long timeoutNanos) throws RpcException {
        if (closed) {
            throw RpcException.noReply("the session is over");
        }
        try {
            ClientHandshake.OpenedConnection opened = ClientHandshake.open(
                    connector, new ClientHandshake.HandshakeSettings(options, callTimeouts, session, timeoutNanos));
            return new DataConnection(opened, callTimeouts, releaseQueue);
        } catch (IOException unreachable) {
            throw RpcException.noReply(String.valueOf(unreachable.getMessage()));
        }
    }

    void close() {
        closed = true;
        for (DataConnection line = idle.pollFirst(); line != null; line = idle.pollFirst()) {
            line.close();
        }
    }
}
