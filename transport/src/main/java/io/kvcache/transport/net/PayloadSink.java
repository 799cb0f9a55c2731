package io.kvcache.transport.net;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;

/// The destination of a payload, and the listener for its completion. It adds the bytes to the checksum as they
/// arrive, while the processor's caches still have them.
///
/// Not safe for several threads.
public final class PayloadSink {

    /// Most bytes of one read: few enough to be still in a second-level cache when the checksum is computed.
    private static final int MAX_CHUNK_BYTES = 256 << 10;

    /// Target of discarded bytes. Several threads write here, and none reads it.
    private static final ByteBuffer DISCARD_BUFFER = ByteBuffer.allocateDirect(64 << 10);

    private final boolean wanted;
    private final List<MemorySegment> pieces;
    private final CompletionListener listener;
    private final ChunkedCrc crc = new ChunkedCrc();
    private long remaining;
    private int piece;
    private ByteBuffer view;

    /// Called when a payload is complete.
    @FunctionalInterface
    public interface CompletionListener {

        /// The payload is complete.
        ///
        /// @param sum of the bytes so far; empty for a discarded payload
        void onComplete(ChunkedCrc sum) throws ProtocolException;
    }

    /// @param first the first piece
    /// @param pieces all pieces, or empty for a single buffer
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

    /// Returns a sink into native memory, which must stay valid until `completionListener` is called or the
    /// connection ends.
    ///
    /// @param pieces as large as the payload together
    public static PayloadSink into(List<MemorySegment> pieces, CompletionListener completionListener) {
        long bytes = 0;
        for (MemorySegment each : pieces) {
            bytes += each.byteSize();
        }
        return new PayloadSink(pieces.getFirst().asByteBuffer(), true, pieces, bytes, completionListener);
    }

    /// Returns a sink into one piece of native memory.
    public static PayloadSink into(ByteBuffer room, CompletionListener completionListener) {
        return new PayloadSink(room.clear(), true, List.of(), room.capacity(), completionListener);
    }

    /// Returns a sink that discards the bytes.
    public static PayloadSink discard(long bytes, CompletionListener completionListener) {
        return new PayloadSink(DISCARD_BUFFER.duplicate(), false, List.of(), bytes, completionListener);
    }

    /// Reuses this sink for the next payload after the last one is complete, for many blocks in a row.
    public PayloadSink reuse(ByteBuffer room) {
        view = room.clear();
        remaining = room.capacity();
        crc.reset();
        return this;
    }

    long remainingBytes() {
        return remaining;
    }

    /// Returns the buffer for the next bytes.
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
