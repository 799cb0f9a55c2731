package io.kvcache.transport.wire;

import java.nio.ByteBuffer;

/// A frame on its way out.
///
/// @param head header and body, from position to limit
/// @param payload what follows
public record OutboundFrame(ByteBuffer head, Payload payload) {

    /// This frame with one without payload before it, to be sent as one.
    public OutboundFrame precededBy(OutboundFrame first) {
        ByteBuffer both = ByteBuffer.allocate(first.head.remaining() + head.remaining());
        both.put(first.head.duplicate()).put(head.duplicate());
        return new OutboundFrame(both.flip(), payload);
    }
}
