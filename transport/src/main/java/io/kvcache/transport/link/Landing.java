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

    private final boolean wanted;
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

    /// @param first where it begins
    /// @param pieces all of them, if it does not end there
    private Landing(ByteBuffer first, boolean wanted, List<MemorySegment> pieces, long bytes, Arrived arrived) {
        view = first;
        this.wanted = wanted;
        this.pieces = pieces;
        this.arrived = arrived;
        left = bytes;
    }

    /// Into native memory, which must stay until `arrived` is called or the connection is over.
    ///
    /// @param pieces as large as the payload together
    public static Landing into(List<MemorySegment> pieces, Arrived arrived) {
        long bytes = 0;
        for (MemorySegment each : pieces) {
            bytes += each.byteSize();
        }
        return new Landing(pieces.getFirst().asByteBuffer(), true, pieces, bytes, arrived);
    }

    /// Into one piece of native memory.
    public static Landing into(ByteBuffer room, Arrived arrived) {
        return new Landing(room.clear(), true, List.of(), room.capacity(), arrived);
    }

    /// Nowhere.
    public static Landing discard(long bytes, Arrived arrived) {
        return new Landing(NOWHERE.duplicate(), false, List.of(), bytes, arrived);
    }

    /// The same for the next payload, once the last one is there: for blocks of which many come, one after the other.
    public Landing again(ByteBuffer room) {
        view = room.clear();
        left = room.capacity();
        crc.reset();
        return this;
    }

    long left() {
        return left;
    }

    /// Where the next bytes go.
    ByteBuffer target() {
        if (!wanted) {
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
        if (wanted) {
            int end = view.position();
            crc.update(view, end - bytes, end);
        }
        if (left == 0) {
            arrived.arrived(crc);
        }
    }
}
