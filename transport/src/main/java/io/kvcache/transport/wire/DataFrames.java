package io.kvcache.transport.wire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// The frames that carry the blocks of one answer, or its object: one head, that says something else each time.
///
/// **Ownership.** A frame is good until the next one is asked for.
///
/// Not safe for several threads.
public final class DataFrames {

    private static final int BODY_BYTES = 2 * Integer.BYTES;

    private final ByteBuffer head =
            ByteBuffer.allocate(FrameHeader.BYTES + BODY_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private final long request;

    /// @param request that they answer
    public DataFrames(long request) {
        this.request = request;
    }

    /// The next one.
    ///
    /// @param index of the block in its chain
    public OutboundFrame next(int index, int checksum, Payload payload) {
        int bytes = (int) payload.bytes();
        new FrameHeader(MessageType.DATA.code(), FrameHeader.REPLY, request, BODY_BYTES, bytes, Status.OK.code())
                .write(head.clear());
        return new OutboundFrame(head.putInt(index).putInt(checksum).flip(), payload);
    }
}
