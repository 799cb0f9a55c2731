package io.kvcache.core.store;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// The checksum of a block or object: CRC32C of each 64 KiB chunk, and a CRC32C over those.
///
/// Chunks, so that a slice of a block can be verified without the rest; the sum over them is what a record
/// keeps. It covers the chunk sums as little-endian int32, in order. How the bytes are handed over makes no
/// difference.
///
/// **Threads.** One at a time.
public final class ChunkedCrc {

    /// Small enough to be still in a core's cache after copying, large enough that a call costs nothing.
    public static final int CHUNK_BYTES = 64 << 10;

    private final CRC32C chunk = new CRC32C();
    private final CRC32C whole = new CRC32C();
    private int filled;

    /// Checksum of a span in native memory.
    public static int of(MemorySegment bytes) {
        ChunkedCrc crc = new ChunkedCrc();
        crc.update(bytes);
        return crc.value();
    }

    /// Copies the source from `offset` on over all of `target`, and adds it to the sum while it is in cache.
    ///
    /// @param target native memory
    public void copy(MemorySegment source, long offset, MemorySegment target) {
        ByteBuffer view = target.asByteBuffer();
        int size = view.capacity();
        for (int at = 0; at < size; ) {
            int length = Math.min(CHUNK_BYTES - filled, size - at);
            MemorySegment.copy(source, offset + at, target, at, length);
            add(view, at, length);
            at += length;
        }
    }

    /// Adds a span of native memory.
    public void update(MemorySegment bytes) {
        ByteBuffer view = bytes.asByteBuffer();
        int size = view.capacity();
        for (int at = 0; at < size; ) {
            int length = Math.min(CHUNK_BYTES - filled, size - at);
            add(view, at, length);
            at += length;
        }
    }

    /// The sum over all that was added; adding more afterwards begins a new chunk.
    public int value() {
        if (filled > 0) {
            closeChunk();
        }
        return (int) whole.getValue();
    }

    private void add(ByteBuffer view, int at, int length) {
        chunk.update(view.limit(at + length).position(at));
        filled += length;
        if (filled == CHUNK_BYTES) {
            closeChunk();
        }
    }

    private void closeChunk() {
        int sum = (int) chunk.getValue();
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
            whole.update(sum >>> shift);
        }
        chunk.reset();
        filled = 0;
    }
}
