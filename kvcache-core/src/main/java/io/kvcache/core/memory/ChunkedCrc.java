package io.kvcache.core.memory;

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

    /// Small enough that a slice of a block can be verified alone, large enough that a call costs nothing.
    public static final int CHUNK_BYTES = 64 << 10;

    /// A quarter of a first-level data cache of 32 KiB: what was summed is still there when it is copied.
    private static final int TILE_BYTES = 8 << 10;

    private final CRC32C chunk = new CRC32C();
    private final CRC32C whole = new CRC32C();
    private int filled;

    /// Checksum of a span in native memory.
    public static int of(MemorySegment bytes) {
        ChunkedCrc crc = new ChunkedCrc();
        crc.update(bytes);
        return crc.value();
    }

    /// Copies the source from `offset` on over all of `target`, and adds it to the sum on the way.
    ///
    /// A tile of the source is summed first and then copied: the sum reads at the speed of memory, and the copy
    /// finds its source in the first-level cache. The other way round both wait for memory. A source that
    /// is written to meanwhile gets a sum that its bytes do not have, and so is never taken for good.
    ///
    /// @param target native memory
    public void copy(MemorySegment source, long offset, MemorySegment target) {
        long size = target.byteSize();
        if (!isViewable(source)) {
            MemorySegment.copy(source, offset, target, 0, size);
            update(target);
            return;
        }
        ByteBuffer view = source.asSlice(offset, size).asByteBuffer();
        for (int at = 0; at < size; ) {
            int length = (int) Math.min(Math.min(TILE_BYTES, CHUNK_BYTES - filled), size - at);
            add(view, at, length);
            MemorySegment.copy(source, offset + at, target, at, length);
            at += length;
        }
    }

    /// Returns whether the checksum can read the source: native memory and byte arrays, but not other arrays.
    private static boolean isViewable(MemorySegment source) {
        return source.isNative() || source.heapBase().orElse(null) instanceof byte[];
    }

    /// Adds a span of native memory.
    public void update(MemorySegment bytes) {
        ByteBuffer view = bytes.asByteBuffer();
        update(view, 0, view.capacity());
    }

    /// Adds a chunk, whole or the last one.
    ///
    /// @param bytes at most [#CHUNK_BYTES] of native memory
    /// @return the chunk's own sum
    /// @throws IllegalStateException in the middle of another chunk
    public int addChunk(MemorySegment bytes) {
        if (filled > 0 || bytes.byteSize() > CHUNK_BYTES) {
            throw new IllegalStateException(bytes.byteSize() + " bytes after " + filled + " of a chunk; chunks of "
                    + CHUNK_BYTES + " are taken");
        }
        chunk.update(bytes.asByteBuffer());
        return closeChunk();
    }

    /// Adds a chunk of which only the sum is known, between whole chunks.
    public void addChunkSum(int sum) {
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
            whole.update(sum >>> shift);
        }
    }

    /// Adds a span of a buffer, wherever position and limit stand, and leaves them where it ends.
    public void update(ByteBuffer view, int from, int to) {
        for (int at = from; at < to; ) {
            int length = Math.min(CHUNK_BYTES - filled, to - at);
            add(view, at, length);
            at += length;
        }
    }

    /// Begins anew.
    public void reset() {
        chunk.reset();
        whole.reset();
        filled = 0;
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

    private int closeChunk() {
        int sum = (int) chunk.getValue();
        addChunkSum(sum);
        chunk.reset();
        filled = 0;
        return sum;
    }
}
