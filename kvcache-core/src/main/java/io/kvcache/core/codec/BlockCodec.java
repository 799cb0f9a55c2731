package io.kvcache.core.codec;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;

/// Codes whole blocks and objects for where they are stored, and proves them when they come back.
///
/// ```
/// head   of each whole chunk int32 head of ChunkCoder, int32 CRC32C of its plain bytes;
///        of the tail int32 0 and its CRC32C; then the escapes of all chunks, up to a whole page
/// body   the chunks' bodies, 48 KiB each
/// tail   the plain bytes behind the last whole chunk, up to a whole page
/// ```
///
/// What does not become an eighth smaller stays plain: fp8, texts, and values of less than a chunk.
///
/// **Reading in place.** Coded bytes are read into the end of the memory that the plain ones take. Chunk by chunk they
/// are then copied out and decoded, from the first on: what a chunk writes over was decoded before.
///
/// **Threads.** One at a time: it has the memory of one chunk.
public final class BlockCodec {

    private static final ValueLayout.OfInt INT32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int CHUNK_BYTES = ChunkCoder.CHUNK_BYTES;
    private static final int BODY_BYTES = ChunkCoder.BODY_BYTES;

    /// Bytes of a chunk in the directory.
    private static final int ENTRY_BYTES = 8;

    /// Of the plain bytes' sum in an entry.
    private static final int SUM_OFFSET = 4;

    /// Half of what a chunk saves: the other half is what coding must gain at least.
    private static final int MAX_HEAD_PAGES_PER_CHUNK = 2;

    /// A block of as many bytes and more has sums of its pages when it stays plain; a smaller one is read whole.
    private static final int MIN_SUMMED_BYTES = 256 << 10;

    private static final int MAX_ESCAPES_PER_CHUNK = MAX_HEAD_PAGES_PER_CHUNK * Pages.BYTES - ENTRY_BYTES;

    private final ChunkCoder coder = new ChunkCoder();
    private final MemorySegment chunk = Arena.ofAuto().allocate(CHUNK_BYTES, Long.BYTES);
    private final MemorySegment body = Arena.ofAuto().allocate(BODY_BYTES, Long.BYTES);
    private final ChunkedCrc crc = new ChunkedCrc();
    private MemorySegment head = MemorySegment.NULL;

    /// A block as it is to be stored.
    ///
    /// @param bytes whole pages of the memory that was given
    public record CodedBlock(StoredLayout layout, MemorySegment bytes) {}

    /// Returns how many pages the head of a block has that stays plain: 0 when it is small, or too large for one.
    public static int plainHeadPages(int bytes) {
        int pages = PageSums.headPages(bytes);
        return bytes < MIN_SUMMED_BYTES || pages > StoredLayout.MAX_HEAD_PAGES ? 0 : pages;
    }

    /// Sums the pages of a block that stays plain, so that parts of it can be proved.
    ///
    /// @param plain native memory with its bytes in order, in whole pages
    /// @param head [#plainHeadPages] of native memory, at least one
    public static void sumPages(List<MemorySegment> plain, int bytes, MemorySegment head) {
        PageSums.write(plain, bytes, head);
    }

    /// Bytes of memory that [#encode] takes for a block.
    public static long encodeBytes(int bytes) {
        int chunks = StoredLayout.chunks(bytes);
        return Pages.offset(maxHeadPages(chunks)) + (long) chunks * BODY_BYTES + Pages.roundUp(tailBytes(bytes));
    }

    private static int maxHeadPages(int chunks) {
        return Math.min(StoredLayout.MAX_HEAD_PAGES, MAX_HEAD_PAGES_PER_CHUNK * chunks);
    }

    private static int tailBytes(int bytes) {
        return bytes % CHUNK_BYTES;
    }

    /// Codes a block.
    ///
    /// @param plain native memory with its bytes, in order
    /// @param into [#encodeBytes] of native memory, whole pages
    /// @return null when it stays plain
    public @Nullable CodedBlock encode(List<MemorySegment> plain, int bytes, MemorySegment into) {
        int chunks = StoredLayout.chunks(bytes);
        if (chunks == 0) {
            return null;
        }
        Spans source = new Spans(plain);
        long bodies = Pages.offset(maxHeadPages(chunks));
        long directory = directoryBytes(bytes);
        long end = directory;
        for (int i = 0; i < chunks; i++) {
            MemorySegment from = source.view((long) i * CHUNK_BYTES, CHUNK_BYTES, chunk);
            long limit = Math.min(bodies, directory + (i + 1L) * MAX_ESCAPES_PER_CHUNK);
            int chunkHead = coder.encode(from, 0, into, bodies + (long) i * BODY_BYTES, into, end, limit - end);
            if (chunkHead == ChunkCoder.NO_ROOM) {
                return null;
            }
            end += ChunkCoder.escapes(chunkHead);
            crc.reset();
            into.set(INT32, (long) i * ENTRY_BYTES, chunkHead);
            into.set(INT32, (long) i * ENTRY_BYTES + SUM_OFFSET, crc.addChunk(from));
        }
        storeTail(source, bytes, into, bodies + (long) chunks * BODY_BYTES);
        StoredLayout layout = new StoredLayout(StoredLayout.EXPONENT_CODEC, (int) (Pages.roundUp(end) >> Pages.SHIFT));
        into.asSlice(end, Pages.roundUp(end) - end).fill((byte) 0);
        long begin = bodies - Pages.roundUp(end);
        MemorySegment.copy(into, 0, into, begin, Pages.roundUp(end));
        return new CodedBlock(layout, into.asSlice(begin, Pages.offset(layout.pages(bytes))));
    }

    private void storeTail(Spans source, int bytes, MemorySegment into, long at) {
        int tail = tailBytes(bytes);
        if (tail > 0) {
            MemorySegment stored = into.asSlice(at, tail);
            source.copy((long) bytes - tail, stored);
            into.asSlice(at + tail, Pages.roundUp(tail) - tail).fill((byte) 0);
            crc.reset();
            long entry = (long) StoredLayout.chunks(bytes) * ENTRY_BYTES;
            into.set(INT32, entry, 0);
            into.set(INT32, entry + SUM_OFFSET, crc.addChunk(stored));
        }
    }

    /// An entry for each chunk and for the tail, so that the sums alone give the checksum of the whole.
    private static long directoryBytes(int bytes) {
        return Math.ceilDiv((long) bytes, CHUNK_BYTES) * ENTRY_BYTES;
    }

    /// Decodes a block in place.
    ///
    /// @param pages native memory in whole pages, as many as the plain bytes take; its last ones hold
    ///     the stored bytes
    /// @param checksum that the plain bytes must have
    /// @return whether they have it
    public boolean decode(StoredLayout layout, List<MemorySegment> pages, int bytes, int checksum) {
        Spans spans = new Spans(pages);
        int chunks = StoredLayout.chunks(bytes);
        long headBytes = Pages.offset(layout.headPages());
        long bodies = Pages.roundUp(bytes) - Pages.offset(layout.pages(bytes)) + headBytes;
        if (head.byteSize() < headBytes) {
            head = Arena.ofAuto().allocate(headBytes, Long.BYTES);
        }
        spans.copy(bodies - headBytes, head.asSlice(0, headBytes));
        ChunkDirectory directory = new ChunkDirectory(head, headBytes, bytes);
        crc.reset();
        for (int i = 0; i < chunks; i++) {
            if (!directory.next()) {
                return false;
            }
            spans.copy(bodies + (long) i * BODY_BYTES, body);
            MemorySegment inPlace = spans.contiguous((long) i * CHUNK_BYTES, CHUNK_BYTES);
            MemorySegment to = inPlace == null ? chunk : inPlace;
            coder.decode(directory.chunkHead(), body, 0, head, directory.escapes(), to, 0);
            if (crc.addChunk(to) != directory.chunkSum()) {
                return false;
            }
            if (inPlace == null) {
                spans.fill((long) i * CHUNK_BYTES, chunk);
            }
        }
        int tail = tailBytes(bytes);
        if (tail > 0) {
            crc.addChunk(spans.view((long) bytes - tail, tail, chunk));
        }
        return crc.value() == checksum;
    }

    /// Takes some bytes of a block out of what was read of it.
    ///
    /// @param storedHead the block's head, in native memory
    /// @param isHeadProved whether it was proved before
    /// @param storedBody [StoredRange#pages] from [StoredRange#firstPage] on, in native memory
    /// @param checksum of the whole block
    /// @param target of as many bytes as are wanted; holds some of them when they are refused. The body may lie
    ///     in it as [StoredRange#bodyIn] says
    /// @return whether they are the block's
    public boolean extract(
            StoredRange range,
            MemorySegment storedHead,
            boolean isHeadProved,
            MemorySegment storedBody,
            int checksum,
            MemorySegment target) {
        boolean proved = isHeadProved || range.layout().isCoded();
        return (proved || PageSums.prove(storedHead, range.bytes(), checksum))
                && range.extract(storedHead, storedBody, checksum, target, coder, chunk);
    }

    /// Walks the directory of a head that may be damaged.
    static final class ChunkDirectory {

        private final MemorySegment head;
        private final long headBytes;
        private int index = -1;
        private int chunkHead;
        private long escapes;
        private long end;

        /// @param bytes plain ones of the block
        ChunkDirectory(MemorySegment head, long headBytes, int bytes) {
            this.head = head;
            this.headBytes = headBytes;
            end = directoryBytes(bytes);
        }

        /// Goes on to the next chunk, and returns whether its escapes lie within the head.
        boolean next() {
            index++;
            if (end > headBytes) {
                return false;
            }
            chunkHead = head.get(INT32, (long) index * ENTRY_BYTES);
            escapes = end;
            end += ChunkCoder.escapes(chunkHead);
            return end <= headBytes;
        }

        int chunkHead() {
            return chunkHead;
        }

        /// The sum of the chunk's plain bytes.
        int chunkSum() {
            return head.get(INT32, (long) index * ENTRY_BYTES + SUM_OFFSET);
        }

        /// Where the chunk's escapes begin.
        long escapes() {
            return escapes;
        }
    }

    /// Memory in several pieces, by offset.
    private record Spans(List<MemorySegment> pieces) {

        /// The bytes themselves, or null when they lie in more than one piece.
        @Nullable
        MemorySegment contiguous(long from, long bytes) {
            long at = from;
            for (MemorySegment piece : pieces) {
                if (at < piece.byteSize()) {
                    return at + bytes <= piece.byteSize() ? piece.asSlice(at, bytes) : null;
                }
                at -= piece.byteSize();
            }
            return null;
        }

        /// The bytes themselves, or a copy when they lie in more than one piece.
        MemorySegment view(long from, long bytes, MemorySegment copy) {
            MemorySegment view = contiguous(from, bytes);
            if (view == null) {
                view = copy.asSlice(0, bytes);
                copy(from, view);
            }
            return view;
        }

        void copy(long from, MemorySegment into) {
            forEachPart(
                    from, into.byteSize(), (part, done) -> MemorySegment.copy(part, 0, into, done, part.byteSize()));
        }

        void fill(long to, MemorySegment bytes) {
            forEachPart(
                    to, bytes.byteSize(), (part, done) -> MemorySegment.copy(bytes, done, part, 0, part.byteSize()));
        }

        private void forEachPart(long from, long bytes, ObjLongConsumer<MemorySegment> each) {
            long skipped = 0;
            long done = 0;
            for (MemorySegment piece : pieces) {
                long at = from + done - skipped;
                long length = Math.min(piece.byteSize() - at, bytes - done);
                if (length > 0) {
                    each.accept(piece.asSlice(at, length), done);
                    done += length;
                }
                skipped += piece.byteSize();
            }
        }
    }
}
