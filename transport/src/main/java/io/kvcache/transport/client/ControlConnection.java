package io.kvcache.transport.client;

import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The connection for concurrent requests. A thread of its own reads it.
final class ControlConnection implements FrameHandler {

    private final FrameConnection connection;
    private final Consumer<LeaseProgress> progress;
    private final Runnable ended;
    private final ReleaseQueue releaseQueue;
    private final LongAdder heard;
    private final ChainDictionary chains = new ChainDictionary();
    private final Map<Long, PendingCall<?>> calls = new ConcurrentHashMap<>();
    private final AtomicLong numbers = new AtomicLong();
    private volatile boolean closed;

    /// Progress of a lease.
    ///
    /// @param ready blocks of its table
    /// @param end block of the chain after the last that is expected
    record LeaseProgress(long lease, int ready, int end) {}

    /// Reads the body of a reply, on the reading thread.
    @FunctionalInterface
    interface ReplyParser<T> {
        T parse(BodyReader body) throws ProtocolException;
    }

    /// @param concernsChain whether it is about one
    private record PendingCall<T>(ReplyParser<T> parser, CompletableFuture<T> result, boolean concernsChain) {

        void complete(BodyReader body) throws ProtocolException {
            result.complete(parser.parse(body));
        }
    }

    /// A request, and the parser of its reply.
    record CallRequest<T>(MessageType type, BodyWriter body, ReplyParser<T> parser, long timeoutNanos) {}

    /// @param heard counts the server's messages
    /// @param progress hears news, on the reading thread
    /// @param ended hears that the connection is over
    ControlConnection(
            ClientHandshake.OpenedConnection opened,
            ReleaseQueue releaseQueue,
            LongAdder heard,
            Consumer<LeaseProgress> progress,
            Runnable ended) {
        connection = opened.connection();
        this.releaseQueue = releaseQueue;
        this.heard = heard;
        this.progress = progress;
        this.ended = ended;
        opened.handOverTo(this);
    }

    /// Reads frames until the connection ends.
    void readLoop() {
        boolean open = true;
        while (open) {
            open = connection.pump();
        }
    }

    /// Sends a request, and returns its future reply.
    <T> CompletableFuture<T> call(CallRequest<T> request) {
        long number = numbers.incrementAndGet();
        PendingCall<T> call = registerCall(number, request.parser, false);
        send(number, request);
        return call.result;
    }

    private synchronized <T> void send(long number, CallRequest<T> request) {
        send(request.body.request(request.type, number, request.timeoutNanos), number);
    }

    /// Sends a request. One that does not go out fails at once.
    private void send(OutboundFrame request, long number) {
        send(request);
        if (closed) {
            fail(number);
        }
    }

    /// Sends a frame with what is to be released. A connection that does not take one is over.
    private void send(OutboundFrame frame) {
        if (!connection.send(ReleaseQueue.prepend(frame, releaseQueue.drain()))) {
            closed = true;
        }
    }

    /// Returns whether the connection is over.
    boolean isClosed() {
        return closed;
    }

    /// Sends a request about a chain.
    ///
    /// @param namespace the session's number of the chain's namespace
    <T> CompletableFuture<T> call(RemoteContext.ChainCall<T> asked, int namespace, long timeoutNanos) {
        long number = numbers.incrementAndGet();
        synchronized (this) {
            ChainDictionary.ChainReference reference = chains.define(asked.chain(), namespace);
            BodyWriter body = new BodyWriter()
                    .u8(reference.slot())
                    .u8(0)
                    .u16(0)
                    .i32(asked.chain().length());
            asked.rest().accept(body);
            PendingCall<T> call = registerCall(number, asked.parser(), true);
            OutboundFrame request = body.request(asked.type(), number, timeoutNanos);
            send(reference.prependTo(request), number);
            return call.result;
        }
    }

    private <T> PendingCall<T> registerCall(long number, ReplyParser<T> parser, boolean chain) {
        PendingCall<T> call = new PendingCall<>(parser, new CompletableFuture<>(), chain);
        calls.put(number, call);
        if (closed) {
            fail(number);
        }
        return call;
    }

    /// Waits for a reply.
    ///
    /// @param late what becomes of one that comes too late
    static <T> T await(CompletableFuture<T> answer, long nanos, Consumer<T> late) throws RpcException {
        try {
            return answer.get(nanos, TimeUnit.NANOSECONDS);
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof RpcException known
                    ? known
                    : RpcException.noReply(String.valueOf(failed.getCause()));
        } catch (TimeoutException slow) {
            dispose(answer, late);
            throw RpcException.noReply("no answer in time");
        } catch (InterruptedException stopped) {
            dispose(answer, late);
            Thread.currentThread().interrupt();
            throw RpcException.noReply("interrupted");
        }
    }

    private static <T> void dispose(CompletableFuture<T> answer, Consumer<T> late) {
        var _ = answer.thenAccept(late);
    }

    /// Sends a message that has no reply.
    synchronized void sendOneWay(MessageType type, BodyWriter body) {
        send(body.request(type, 0, 0));
    }

    /// Sends the queued releases that no other frame has carried.
    synchronized void flushReleases() {
        if (!releaseQueue.isEmpty()) {
            send(ReleaseQueue.releaseBody(releaseQueue.drain()).request(MessageType.RELEASE, 0, 0));
        }
    }

    FrameConnection connection() {
        return connection;
    }

    @Override
    public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
        heard.increment();
        if (header.type() == MessageType.PROGRESS.code()) {
            progress.accept(new LeaseProgress(body.i64("lease"), body.count("ready"), body.count("end")));
            return;
        }
        PendingCall<?> call = header.isReply() ? calls.remove(header.request()) : null;
        if (call != null && header.status() == Status.OK) {
            completeCall(call, body);
        } else if (call != null) {
            onRejected(call, RpcException.rejected(header.status(), body));
        }
    }

    private void onRejected(PendingCall<?> call, RpcException refusal) {
        if (call.concernsChain) {
            chains.invalidate(refusal);
        }
        call.result.completeExceptionally(refusal);
    }

    private static void completeCall(PendingCall<?> call, BodyReader body) throws ProtocolException {
        try {
            call.complete(body);
        } catch (ProtocolException malformed) {
            call.result.completeExceptionally(RpcException.noReply(String.valueOf(malformed.getMessage())));
            throw malformed;
        }
    }

    @Override
    public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
        throw new ProtocolException("an unrequested payload of type " + header.type() + "; allowed: none");
    }

    @Override
    public void onClosed(DisconnectReason reason) {
        closed = true;
        calls.keySet().forEach(this::fail);
        ended.run();
    }

    private void fail(long number) {
        @Nullable PendingCall<?> call = calls.remove(number);
        if (call != null) {
            call.result.completeExceptionally(RpcException.noReply("the connection is over"));
        }
    }
}
