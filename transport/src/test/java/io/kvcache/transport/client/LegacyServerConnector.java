package io.kvcache.transport.client;

import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;

/// Connects to servers as if they had no capabilities.
record LegacyServerConnector(Connector connector) implements Connector {

    @Override
    public FrameConnection connect(FrameHandler handler, long timeoutNanos) throws IOException {
        return connector.connect(new CapabilityFilter(handler), timeoutNanos);
    }

    private record CapabilityFilter(FrameHandler handler) implements FrameHandler {

        @Override
        public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
            handler.onMessage(header, header.type() == MessageType.HELLO.code() ? without(Challenge.read(body)) : body);
        }

        private static BodyReader without(Challenge challenge) throws ProtocolException {
            Challenge less = new Challenge(challenge.version(), challenge.proofRequired(), 0, challenge.nonce());
            return RecordingSink.frames(RecordingSink.bytes(less.frame(1)))
                    .getFirst()
                    .reader();
        }

        @Override
        public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
            return handler.onPayload(header, body);
        }

        @Override
        public void onClosed(DisconnectReason reason) {
            handler.onClosed(reason);
        }
    }
}
