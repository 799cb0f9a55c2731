package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.FrameSink;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import org.jspecify.annotations.Nullable;

/// One connection, from its first frame to its last: first who it is, then requests in order.
final class ServerConnection implements FrameHandler {

    /// Of a stranger: HELLO with the longest name of a tenant, and as much for what a later version adds.
    static final int MAX_HANDSHAKE_BODY_BYTES = 128 << 10;

    private final Endpoint endpoint;
    private final FrameSink frameSink;
    private final EndpointStats.Counters counters;
    private final long openedNanos;
    private final ServerHandshake serverHandshake;
    private @Nullable RequestDispatcher requestDispatcher;
    private volatile @Nullable ClientSession session;

    /// @param since when the connection was opened
    ServerConnection(Endpoint endpoint, FrameSink frameSink, long since) {
        this.endpoint = endpoint;
        this.frameSink = frameSink;
        this.openedNanos = since;
        counters = endpoint.context().counters();
        serverHandshake = new ServerHandshake(endpoint, this);
    }

    /// Whether it has taken too long to say who it is.
    boolean isHandshakeOverdue(long nowNanos, long handshakeNanos) {
        return session == null && nowNanos - openedNanos > handshakeNanos;
    }

    FrameSink frameSink() {
        return frameSink;
    }

    /// A long frame takes its time, and who sends it is not silent.
    @Override
    public void onBytesReceived() {
        RequestDispatcher open = requestDispatcher;
        if (open != null) {
            onActivity(open.session());
        }
    }

    @Override
    public int maxBodyBytes() {
        return requestDispatcher == null ? MAX_HANDSHAKE_BODY_BYTES : FrameHeader.MAX_BODY_BYTES;
    }

    @Override
    public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
        MessageType type = MessageType.of(header.type());
        if (header.isReply() || type == MessageType.ERROR) {
            return;
        }
        counters.requests.increment();
        RequestDispatcher open = requestDispatcher;
        if (type == null) {
            refuseUnknown(header);
        } else if (open == null) {
            handshake(type, header, body);
        } else {
            open.onMessage(type, EndpointRequest.of(type, header, frameSink, counters), body);
        }
    }

    private void refuseUnknown(FrameHeader header) {
        counters.refusals.increment();
        if (header.request() != 0) {
            String text = "message type " + header.type() + " is not known here";
            frameSink.send(BodyWriter.errorReply(header.type(), header.request(), Status.UNSUPPORTED, text));
        }
    }

    private void handshake(MessageType type, FrameHeader header, BodyReader body) throws ProtocolException {
        ClientSession welcomed =
                serverHandshake.onMessage(type, EndpointRequest.of(type, header, frameSink, counters), body);
        if (welcomed != null) {
            onActivity(welcomed);
            requestDispatcher = new RequestDispatcher(endpoint.context().forTenant(welcomed.onlyTenant()), welcomed);
            session = welcomed;
        }
    }

    private void onActivity(ClientSession by) {
        by.recordActivity(endpoint.nowNanos());
    }

    @Override
    public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
        MessageType type = MessageType.of(header.type());
        RequestDispatcher open = requestDispatcher;
        if (open == null) {
            throw new ProtocolException("a payload before AUTH; allowed: HELLO and AUTH, without");
        }
        counters.requests.increment();
        if (type == null || header.isReply()) {
            return PayloadSink.discard(header.payloadBytes(), sum -> refuseUnknown(header));
        }
        return open.onPayload(header, EndpointRequest.of(type, header, frameSink, counters), body);
    }

    @Override
    public void onClosed(DisconnectReason reason) {
        counters.countClosed(reason);
        RequestDispatcher open = requestDispatcher;
        if (open != null) {
            open.onClosed();
            open.session().removeConnection(frameSink);
            if (serverHandshake.startedSession()) {
                open.session().close(DisconnectReason.SESSION_OVER);
            }
        }
        endpoint.removeConnection(this, open == null ? null : open.session());
    }
}
