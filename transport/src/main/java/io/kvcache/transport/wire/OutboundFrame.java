package io.kvcache.transport.wire;

import io.kvcache.core.codec.StoredLayout;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/// A frame on its way out.
///
/// @param head header and body, from position to limit
/// @param payload what follows
public record OutboundFrame(ByteBuffer head, Payload payload) {

    /// This frame with one without payload before it, to be sent as one.
    public OutboundFrame precededBy(OutboundFrame first) {
        ByteBuffer both = ByteBuffer.allocate(first.head.remaining() + head.remaining());
        copy(first.head, both);
        copy(head, both);
        return new OutboundFrame(both.flip(), payload);
    }

    private static void copy(ByteBuffer head, ByteBuffer to) {
        int end = to.position() + head.remaining();
        to.put(to.position(), head, head.position(), head.remaining()).position(end);
    }

    /// The frames that carry the blocks of one answer, or its object: one head, that says something else each time.
    ///
    /// **Ownership.** A frame is good until the next one is asked for.
    ///
    /// Not safe for several threads.
    public static final class DataFrames {

        private static final int BODY_BYTES = 2 * Integer.BYTES;

        /// With the layout of coded bytes.
        private static final int CODED_BODY_BYTES = BODY_BYTES + Integer.BYTES;

        private final ByteBuffer head =
                ByteBuffer.allocate(FrameHeader.BYTES + CODED_BODY_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        private final long request;

        /// @param request that they answer
        public DataFrames(long request) {
            this.request = request;
        }

        /// The next one.
        ///
        /// @param index of the block in its chain
        public OutboundFrame next(int index, int checksum, Payload payload) {
            return new OutboundFrame(
                    begin(BODY_BYTES, payload).putInt(index).putInt(checksum).flip(), payload);
        }

        /// The next one, of a block that is coded.
        ///
        /// @param checksum of its plain bytes
        /// @param layout of the payload
        public OutboundFrame next(int index, int checksum, StoredLayout layout, Payload payload) {
            ByteBuffer body = begin(CODED_BODY_BYTES, payload).putInt(index).putInt(checksum);
            return new OutboundFrame(body.putInt(layout.toBits()).flip(), payload);
        }

        private ByteBuffer begin(int bodyBytes, Payload payload) {
            int bytes = (int) payload.bytes();
            new FrameHeader(MessageType.DATA.code(), FrameHeader.REPLY, request, bodyBytes, bytes, Status.OK.code())
                    .write(head.clear());
            return head;
        }
    }

    /// The bytes of a block or object, where they lie.
    ///
    /// @param pieces in order, native memory that stays as it is until the frame is sent
    /// @param bytes of all pieces together
    public record Payload(List<MemorySegment> pieces, long bytes) {

        public static final Payload NONE = of(List.of());

        public Payload {
            pieces = List.copyOf(pieces);
            if (bytes > FrameHeader.MAX_PAYLOAD_BYTES) {
                throw new IllegalArgumentException(
                        "a payload of " + bytes + " bytes; allowed: 0 to " + FrameHeader.MAX_PAYLOAD_BYTES);
            }
        }

        /// One piece.
        public static Payload of(MemorySegment piece) {
            return new Payload(List.of(piece), piece.byteSize());
        }

        /// All of these pieces.
        public static Payload of(List<MemorySegment> pieces) {
            long bytes = 0;
            for (MemorySegment piece : pieces) {
                bytes += piece.byteSize();
            }
            return new Payload(pieces, bytes);
        }
    }
}
