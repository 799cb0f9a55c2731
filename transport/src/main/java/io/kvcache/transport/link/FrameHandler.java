package io.kvcache.transport.link;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Violation;

/// Hears the frames of one connection, in order, one at a time.
public interface FrameHandler {

    /// A frame without payload is there.
    ///
    /// @param body valid during the call
    /// @throws Violation when the peer may not send it
    void message(FrameHeader header, BodyReader body) throws Violation;

    /// Header and body of a frame with payload are there: says where the payload goes.
    ///
    /// @param body valid during the call
    /// @throws Violation when the peer may not send it
    Landing payload(FrameHeader header, BodyReader body) throws Violation;

    /// The connection is over, wherever it was; the last call.
    void closed(CloseReason reason);
}
