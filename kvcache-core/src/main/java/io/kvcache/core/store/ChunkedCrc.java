package io.kvcache.core.store;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// The checksum of a block: CRC32C of each 64 KiB chunk, and a CRC32C over those.
///
/// Chunks, so that a slice of a block can be verified without the rest; the sum over them is what a record keeps. It
/// covers the chunk sums as little-endian int32, in order.
///
/// **Threads.** One at a time.
public final class ChunkedCrc {

    /// Small enough to be still in a core's cache after copying, large enough that a call costs nothing.
    public static final int CHUNK_BYTES = 64 << 10;

    private final CRC32C chunk = new CRC32C();
    private final CRC32C whole = new CRC32C();

    /// Checksum of a span in native memory.
    public static int of(MemorySegment bytes) {
        ChunkedCrc crc = new ChunkedCrc();
        crc.update(bytes);
        return crc.value();
    }

    /// Copies `source` over `target`, chunk by chunk, and adds it to the sum while it is in cache.
    public void copy(MemorySegment source, MemorySegment target) {
        ByteBuffer view = target.asByteBuffer();
        long size = target.byteSize();
        for (long at = 0; at < size; at += CHUNK_BYTES) {
            int length = (int) Math.min(CHUNK_BYTES, size - at);
            MemorySegment.copy(source, at, target, at, length);
            addChunk(view, (int) at, length);
        }
    }

    /// Adds a span. Spans other than the last are whole chunks.
    public void update(MemorySegment bytes) {
        ByteBuffer view = bytes.asByteBuffer();
        int size = view.capacity();
        for (int at = 0; at < size; at += CHUNK_BYTES) {
            addChunk(view, at, Math.min(CHUNK_BYTES, size - at));
        }
    }

    /// The sum over all that was added.
    public int value() {
        return (int) whole.getValue();
    }

    private void addChunk(ByteBuffer view, int at, int length) {
        chunk.reset();
        chunk.update(view.limit(at + length).position(at));
        int sum = (int) chunk.getValue();
        whole.update(sum);
        whole.update(sum >>> 8);
        whole.update(sum >>> 16);
        whole.update(sum >>> 24);
    }
}
