package io.kvcache.transport.client;

import io.kvcache.core.identity.BlockChain;
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
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A connection for blocks. One thread at a time has it, sends a request and reads the reply itself, so no other
/// thread must be woken.
final class DataConnection implements FrameHandler {

    private final FrameConnection connection;
    private final CallTimeouts callTimeouts;
    private final ReleaseQueue releaseQueue;
    private final ChainDictionary chains = new ChainDictionary();
    private long number;
    private long lastReplied;
    private @Nullable ReplyHandler replyHandler;
    private boolean replied;
    private @Nullable RequestPipeline pipeline;
    private @Nullable RpcException refusal;

    /// Handles the reply to one request, and its payloads.
    interface ReplyHandler {

        /// Reads the reply.
        void onReply(BodyReader body) throws ProtocolException;

        /// Returns the sink for a payload that begins.
        default PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
            throw new ProtocolException("a payload of type " + header.type() + "; allowed: none");
        }

        /// Returns whether the reply is complete.
        boolean isComplete();
    }

    /// Reads a reply of one frame without payload.
    static final class SingleReply<T> implements ReplyHandler {

        private final ControlConnection.ReplyParser<T> parser;
        private @Nullable T value;

        SingleReply(ControlConnection.ReplyParser<T> parser) {
            this.parser = parser;
        }

        /// Returns the parsed reply. Only after the call has returned.
        T value() {
            return Objects.requireNonNull(value);
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            value = parser.parse(body);
        }

        @Override
        public boolean isComplete() {
            return value != null;
        }
    }

    /// Pipelined requests. Their replies arrive in order.
    interface RequestPipeline {

        /// Returns the next request, or null after the last one.
        @Nullable
        OutboundFrame nextFrame(long number);

        /// Reads the next reply.
        void onReply(BodyReader body) throws ProtocolException;

        /// Reads the next reply, which is a refusal.
        void onRejected(RpcException refusal);
    }

    DataConnection(ClientHandshake.OpenedConnection opened, CallTimeouts callTimeouts, ReleaseQueue releaseQueue) {
        connection = opened.connection();
        this.callTimeouts = callTimeouts;
        this.releaseQueue = releaseQueue;
        opened.handOverTo(this);
    }

    boolean isOpen() {
        return connection.isOpen();
    }

    void close() {
        connection.close(DisconnectReason.SHUTDOWN);
    }

    /// A request about a chain.
    ///
    /// @param number of its namespace in this session
    /// @param rest writes what comes after the chain
    record ChainRequest(MessageType type, BlockChain chain, int number, Consumer<BodyWriter> rest) {}

    /// Defines a chain, and returns its slot with the frames to send before a request about it.
    ChainDictionary.ChainReference defineChain(BlockChain chain, int namespace) {
        return chains.define(chain, namespace);
    }

    /// Handles the refusal of a request about a chain. Returns whether a retry with a new definition may help.
    boolean invalidateChains(RpcException refusal) {
        return chains.invalidate(refusal);
    }

    /// Sends a request about a chain, and again if the server has dropped the chain. Waits for the whole reply.
    void call(ChainRequest chainRequest, long timeoutNanos, ReplyHandler with) throws RpcException {
        ReplyHandler _ = RemoteContext.retryOnce(timeoutNanos, this::invalidateChains, left -> {
            callOnce(chainRequest, left, with);
            return with;
        });
    }

    private void callOnce(ChainRequest chainRequest, long timeoutNanos, ReplyHandler with) throws RpcException {
        ChainDictionary.ChainReference reference = defineChain(chainRequest.chain, chainRequest.number);
        BodyWriter body = new BodyWriter().u8(reference.slot()).u8(0).u16(0).i32(chainRequest.chain.length());
        chainRequest.rest.accept(body);
        call(reference.prependTo(body.request(chainRequest.type, ++number, timeoutNanos)), timeoutNanos, with);
    }

    /// Sends a request, and waits for the whole reply.
    void call(MessageType type, BodyWriter body, long timeoutNanos, ReplyHandler with) throws RpcException {
        number++;
        call(body.request(type, number, timeoutNanos), timeoutNanos, with);
    }

    /// Sends a request with a payload, and waits for the whole reply.
    void call(MessageType type, BodyWriter body, Payload payload, long timeoutNanos, ReplyHandler with)
            throws RpcException {
        number++;
        call(body.request(type, number, timeoutNanos, payload), timeoutNanos, with);
    }

    private void call(OutboundFrame frame, long timeoutNanos, ReplyHandler with) throws RpcException {
        replyHandler = with;
        replied = false;
        refusal = null;
        List<Long> back = releaseQueue.drain();
        callTimeouts.begin(connection, timeoutNanos);
        try {
            boolean open = connection.send(ReleaseQueue.prepend(frame, back));
            connection.spinUntilReadable();
            while (open && !with.isComplete() && refusal == null) {
                open = connection.pump();
            }
        } finally {
            callTimeouts.end(connection);
            replyHandler = null;
        }
        if (refusal != null) {
            throw refusal;
        }
        if (!with.isComplete()) {
            releaseQueue.requeue(back);
            throw RpcException.noReply("the connection broke");
        }
    }

    /// Sends pipelined requests, and waits for all replies.
    ///
    /// @param ahead requests without an answer at a time; so few that their answers fit the connection while no
    ///     thread reads
    /// @param timeoutNanos for each
    void call(RequestPipeline asking, int ahead, long timeoutNanos) throws RpcException {
        pipeline = asking;
        lastReplied = number;
        List<Long> back = releaseQueue.drain();
        List<Long> told = back;
        boolean open = true;
        boolean more = true;
        try {
            while (open && (more || lastReplied < number)) {
                callTimeouts.begin(connection, timeoutNanos);
                if (!more || number - lastReplied == ahead) {
                    connection.spinUntilReadable();
                    open = connection.pump();
                    continue;
                }
                OutboundFrame next = asking.nextFrame(number + 1);
                more = next != null;
                if (next != null) {
                    number++;
                    open = connection.send(ReleaseQueue.prepend(next, told));
                    told = List.of();
                }
            }
        } finally {
            callTimeouts.end(connection);
            pipeline = null;
        }
        if (!told.isEmpty() || lastReplied < number) {
            releaseQueue.requeue(back);
        }
        if (lastReplied < number) {
            throw RpcException.noReply("the connection broke");
        }
    }

    @Override
    public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
        if (header.type() == MessageType.ERROR.code()) {
            return;
        }
        RequestPipeline asking = pipeline;
        if (asking != null) {
            message(header, body, asking);
            return;
        }
        ReplyHandler with = requireReplyHandler(header);
        if (replied) {
            throw new ProtocolException("a second answer to request %s; allowed: one".formatted(number));
        }
        replied = true;
        if (header.status() == Status.OK) {
            with.onReply(body);
        } else {
            refusal = RpcException.rejected(header.status(), body);
        }
    }

    private void message(FrameHeader header, BodyReader body, RequestPipeline asking) throws ProtocolException {
        if (header.request() != lastReplied + 1 || !header.isReply()) {
            throw new ProtocolException(
                    "an answer to request %s; allowed: to %s".formatted(header.request(), lastReplied + 1));
        }
        lastReplied++;
        if (header.status() == Status.OK) {
            asking.onReply(body);
        } else {
            asking.onRejected(RpcException.rejected(header.status(), body));
        }
    }

    @Override
    public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
        return requireReplyHandler(header).onData(header, body);
    }

    private ReplyHandler requireReplyHandler(FrameHeader header) throws ProtocolException {
        ReplyHandler with = replyHandler;
        if (with == null || header.request() != number || !header.isReply()) {
            throw new ProtocolException("an answer to request %s; allowed: to %s".formatted(header.request(), number));
        }
        return with;
    }

    @Override
    public void onClosed(DisconnectReason reason) {
        // The thread that uses the connection notices, or the next one.
    }
}
