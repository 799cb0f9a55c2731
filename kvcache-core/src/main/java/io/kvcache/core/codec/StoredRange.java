package io.kvcache.core.codec;

import io.kvcache.core.codec.BlockCodec.ChunkDirectory;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/// Some bytes of a stored block: which of its pages hold them, and how these are proved without the others.
///
/// The head proves itself by the block's checksum; then each page, or each coded chunk, is proved by its sum there.
///
/// @param layout with a head
/// @param bytes plain ones of the block
/// @param from the first plain byte that is wanted
/// @param to behind the last, above `from`
public record StoredRange(StoredLayout layout, int bytes, int from, int to) {

    private static final int CHUNK_BYTES = ChunkCoder.CHUNK_BYTES;
    private static final int BODY_PAGES = ChunkCoder.BODY_BYTES / Pages.BYTES;

    /// @throws IllegalArgumentException for a layout without a head, and for bytes beyond the block
    public StoredRange {
        if (layout.headPages() == 0) {
            throw new IllegalArgumentException("a block without a head is not read in part");
        }
        if (from < 0 || from >= to || to > bytes) {
            throw new IllegalArgumentException("bytes " + from + " to " + to + " of a block of " + bytes);
        }
    }

    /// The first of the pages that hold the bytes; the head is before it.
    public int firstPage() {
        return layout.headPages() + (layout.isCoded() ? firstChunk() * BODY_PAGES : from / Pages.BYTES);
    }

    /// Pages that hold the bytes, from the first on.
    public int pages() {
        if (!layout.isCoded()) {
            return Math.ceilDiv(to, Pages.BYTES) - from / Pages.BYTES;
        }
        int end = lastChunk() < chunks() ? layout.headPages() + (lastChunk() + 1) * BODY_PAGES : layout.pages(bytes);
        return end - firstPage();
    }

    /// Whole chunks of a coded block; the tail counts as one more.
    private int chunks() {
        return StoredLayout.chunks(bytes);
    }

    private int firstChunk() {
        return from / CHUNK_BYTES;
    }

    private int lastChunk() {
        return (to - 1) / CHUNK_BYTES;
    }

    /// Where the body may be read to within the memory that the bytes are wanted in: to its end, from where it is
    /// decoded in place.
    ///
    /// @param target of as many bytes as are wanted
    /// @return its last [#pages]; null when the body needs memory of its own
    public @Nullable MemorySegment bodyIn(MemorySegment target) {
        int unit = layout.isCoded() ? CHUNK_BYTES : Pages.BYTES;
        boolean wholePages =
                target.isNative() && target.address() % Pages.BYTES == 0 && target.byteSize() % Pages.BYTES == 0;
        return wholePages && from % unit == 0 && (to % unit == 0 || to == bytes)
                ? target.asSlice(target.byteSize() - Pages.offset(pages()))
                : null;
    }

    /// Takes the bytes out of what was read.
    ///
    /// @param head the block's head, in native memory, proved where the block is not coded
    /// @param body its [#pages] from [#firstPage] on, in native memory
    /// @param checksum of the whole block
    /// @param target of as many bytes as are wanted; holds some of them when they are refused
    /// @param chunk memory for a plain one
    /// @return whether they are the block's
    boolean extract(
            MemorySegment head,
            MemorySegment body,
            int checksum,
            MemorySegment target,
            ChunkCoder coder,
            MemorySegment chunk) {
        return layout.isCoded()
                ? decode(head, checksum, new Chunks(body, target, coder, chunk))
                : copyPages(head, body, target);
    }

    private boolean copyPages(MemorySegment head, MemorySegment body, MemorySegment target) {
        int first = from / Pages.BYTES;
        CRC32C crc = new CRC32C();
        for (int i = 0; i < pages(); i++) {
            long length = Math.min(Pages.BYTES, bytes - Pages.offset(first + i));
            crc.reset();
            crc.update(body.asSlice(Pages.offset(i), length).asByteBuffer());
            if ((int) crc.getValue() != PageSums.sum(head, first + i)) {
                return false;
            }
        }
        if (!body.equals(target)) {
            MemorySegment.copy(body, from - Pages.offset(first), target, 0, to - from);
        }
        return true;
    }

    private boolean decode(MemorySegment head, int checksum, Chunks chunks) {
        ChunkDirectory directory = new ChunkDirectory(head, head.byteSize(), bytes);
        int all = Math.ceilDiv(bytes, CHUNK_BYTES);
        ChunkedCrc whole = new ChunkedCrc();
        for (int i = 0; i < all; i++) {
            if (!directory.next()) {
                return false;
            }
            whole.addChunkSum(directory.chunkSum());
            boolean wanted = i >= firstChunk() && i <= lastChunk();
            if (wanted && !chunks.take(i, head, directory)) {
                return false;
            }
        }
        return whole.value() == checksum;
    }

    /// The chunks of a range on their way from the body to the target.
    private final class Chunks {
        private final MemorySegment body;
        private final MemorySegment target;
        private final ChunkCoder coder;
        private final MemorySegment plain;

        Chunks(MemorySegment body, MemorySegment target, ChunkCoder coder, MemorySegment plain) {
            this.body = body;
            this.target = target;
            this.coder = coder;
            this.plain = plain;
        }

        boolean take(int chunk, MemorySegment head, ChunkDirectory directory) {
            long at = (long) (chunk - firstChunk()) * ChunkCoder.BODY_BYTES;
            MemorySegment bytesOfChunk;
            if (chunk == chunks()) {
                bytesOfChunk = body.asSlice(at, bytes - (long) chunk * CHUNK_BYTES);
            } else {
                coder.decode(directory.chunkHead(), body, at, head, directory.escapes(), plain, 0);
                bytesOfChunk = plain;
            }
            CRC32C crc = new CRC32C();
            crc.update(bytesOfChunk.asByteBuffer());
            if ((int) crc.getValue() != directory.chunkSum()) {
                return false;
            }
            long begin = (long) chunk * CHUNK_BYTES;
            long first = Math.max(from, begin);
            long end = Math.min(to, begin + bytesOfChunk.byteSize());
            MemorySegment.copy(bytesOfChunk, first - begin, target, first - from, end - first);
            return true;
        }
    }
}
