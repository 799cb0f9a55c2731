package io.kvcache.transport.wire;

import java.lang.foreign.MemorySegment;
import java.util.List;

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
