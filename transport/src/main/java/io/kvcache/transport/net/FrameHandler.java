package io.kvcache.transport.net;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.ProtocolException;

/// Hears the frames of one connection, in order, one at a time.
public interface FrameHandler {

    /// Bytes have come, of whatever frame.
    default void onBytesReceived() {}

    /// A frame without payload is there.
    ///
    /// @param body valid during the call
    /// @throws ProtocolException when the peer may not send it
    void onMessage(FrameHeader header, BodyReader body) throws ProtocolException;

    /// Header and body of a frame with payload are there: says where the payload goes.
    ///
    /// @param body valid during the call
    /// @throws ProtocolException when the peer may not send it
    PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException;

    /// Bytes a body may have at the moment: a frame that announces more ends the connection before any of
    /// them are kept.
    default int maxBodyBytes() {
        return FrameHeader.MAX_BODY_BYTES;
    }

    /// The connection is over, wherever it was; the last call.
    void onClosed(DisconnectReason reason);
}
