package io.kvcache.transport.link;

import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;

/// Where a payload goes, and what happens when it is all there. The bytes are summed as they come, while
/// the processor's caches still have them.
///
/// Not safe for several threads.
public final class Landing {

    /// What is asked for at once: what comes in one piece is still in a second-level cache when it is
    /// summed.
    private static final int MOST_AT_ONCE = 256 << 10;

    /// Bytes that nobody wants; what several threads write here is never read.
    private static final ByteBuffer NOWHERE = ByteBuffer.allocateDirect(64 << 10);

    private final List<MemorySegment> pieces;
    private final Arrived arrived;
    private final ChunkedCrc crc = new ChunkedCrc();
    private long left;
    private int piece;
    private ByteBuffer view;

    /// Hears that a payload is complete.
    @FunctionalInterface
    public interface Arrived {

        /// The payload is complete.
        ///
        /// @param sum of the bytes so far; empty of one that was thrown away
        void arrived(ChunkedCrc sum) throws Violation;
    }

    private Landing(List<MemorySegment> pieces, long bytes, Arrived arrived) {
        this.pieces = pieces;
        this.arrived = arrived;
        left = bytes;
        view = pieces.isEmpty() ? NOWHERE.duplicate() : pieces.getFirst().asByteBuffer();
    }

    /// Into native memory, which must stay until `arrived` is called or the connection is over.
    ///
    /// @param pieces as large as the payload together
    public static Landing into(List<MemorySegment> pieces, Arrived arrived) {
        long bytes = pieces.stream().mapToLong(MemorySegment::byteSize).sum();
        return new Landing(pieces, bytes, arrived);
    }

    /// Nowhere.
    public static Landing discard(long bytes, Arrived arrived) {
        return new Landing(List.of(), bytes, arrived);
    }

    long left() {
        return left;
    }

    /// Where the next bytes go.
    ByteBuffer target() {
        if (pieces.isEmpty()) {
            return view.position(0).limit((int) Math.min(left, view.capacity()));
        }
        if (view.position() == view.capacity()) {
            piece++;
            view = pieces.get(piece).asByteBuffer();
        }
        return view.limit((int) Math.min(view.capacity(), (long) view.position() + MOST_AT_ONCE));
    }

    /// As many bytes lie at the last target; its position is behind them.
    void landed(int bytes) throws Violation {
        left -= bytes;
        if (!pieces.isEmpty()) {
            crc.update(pieces.get(piece).asSlice((long) view.position() - bytes, bytes));
        }
        if (left == 0) {
            arrived.arrived(crc);
        }
    }
}
