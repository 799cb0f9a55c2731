package io.kvcache.transport.aeron;

import io.kvcache.transport.wire.OutboundFrame;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.agrona.MutableDirectBuffer;

/// The bytes of a frame, where they lie, in order.
final class GatherBuffer {

    private final List<ByteBuffer> pieces = new ArrayList<>();
    private int piece;
    private long left;

    GatherBuffer(OutboundFrame frame) {
        pieces.add(frame.head().duplicate());
        for (MemorySegment each : frame.payload().pieces()) {
            pieces.add(each.asByteBuffer());
        }
        for (ByteBuffer each : pieces) {
            left += each.remaining();
        }
    }

    long remainingBytes() {
        return left;
    }

    /// Copies the next bytes.
    ///
    /// @param bytes no more than are left
    void copy(MutableDirectBuffer to, int offset, int bytes) {
        int copied = 0;
        while (copied < bytes) {
            ByteBuffer from = pieces.get(piece);
            int some = Math.min(from.remaining(), bytes - copied);
            to.putBytes(offset + copied, from, from.position(), some);
            from.position(from.position() + some);
            copied += some;
            if (!from.hasRemaining()) {
                piece++;
            }
        }
        left -= bytes;
    }
}
