package io.kvcache.transport.link;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;

/// Where a payload goes, and what happens when it is all there. The bytes are summed as they come, while
/// the processor's caches still have them.
///
/// Not safe for several threads.
public final class PayloadSink {

    /// What is asked for at once: what comes in one piece is still in a second-level cache when it is
    /// summed.
    private static final int MAX_CHUNK_BYTES = 256 << 10;

    /// Bytes that are not wanted; what several threads write here is never read.
    private static final ByteBuffer DISCARD_BUFFER = ByteBuffer.allocateDirect(64 << 10);

    private final boolean wanted;
    private final List<MemorySegment> pieces;
    private final CompletionListener listener;
    private final ChunkedCrc crc = new ChunkedCrc();
    private long remaining;
    private int piece;
    private ByteBuffer view;

    /// Hears that a payload is complete.
    @FunctionalInterface
    public interface CompletionListener {

        /// The payload is complete.
        ///
        /// @param sum of the bytes so far; empty of one that was thrown away
        void onComplete(ChunkedCrc sum) throws ProtocolException;
    }

    /// @param first where it begins
    /// @param pieces all of them, if it does not end there
    private PayloadSink(
            ByteBuffer first,
            boolean wanted,
            List<MemorySegment> pieces,
            long bytes,
            CompletionListener completionListener) {
        view = first;
        this.wanted = wanted;
        this.pieces = pieces;
        this.listener = completionListener;
        remaining = bytes;
    }

    /// Into native memory, which must stay until `completionListener` is called or the connection is over.
    ///
    /// @param pieces as large as the payload together
    public static PayloadSink into(List<MemorySegment> pieces, CompletionListener completionListener) {
        long bytes = 0;
        for (MemorySegment each : pieces) {
            bytes += each.byteSize();
        }
        return new PayloadSink(pieces.getFirst().asByteBuffer(), true, pieces, bytes, completionListener);
    }

    /// Into one piece of native memory.
    public static PayloadSink into(ByteBuffer room, CompletionListener completionListener) {
        return new PayloadSink(room.clear(), true, List.of(), room.capacity(), completionListener);
    }

    /// Nowhere.
    public static PayloadSink discard(long bytes, CompletionListener completionListener) {
        return new PayloadSink(DISCARD_BUFFER.duplicate(), false, List.of(), bytes, completionListener);
    }

    /// The same for the next payload, once the last one is there: for blocks of which many come, one after the
    /// other.
    public PayloadSink reuse(ByteBuffer room) {
        view = room.clear();
        remaining = room.capacity();
        crc.reset();
        return this;
    }

    long remainingBytes() {
        return remaining;
    }

    /// Where the next bytes go.
    ByteBuffer writableBuffer() {
        if (!wanted) {
            return view.position(0).limit((int) Math.min(remaining, view.capacity()));
        }
        if (view.position() == view.capacity()) {
            piece++;
            view = pieces.get(piece).asByteBuffer();
        }
        return view.limit((int) Math.min(view.capacity(), (long) view.position() + MAX_CHUNK_BYTES));
    }

    /// As many bytes lie at the last target; its position is behind them.
    void bytesWritten(int bytes) throws ProtocolException {
        remaining -= bytes;
        if (wanted) {
            int end = view.position();
            crc.update(view, end - bytes, end);
        }
        if (remaining == 0) {
            listener.onComplete(crc);
        }
    }
}
