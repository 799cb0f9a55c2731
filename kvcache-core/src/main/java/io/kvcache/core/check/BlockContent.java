package io.kvcache.core.check;

import io.kvcache.core.identity.BlockKey;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Locale;

/// Bytes for a block that are a pure function of its key: a reader that knows the key can verify every byte it gets.
///
/// The 8 bytes at offset `8·i` are a mix of the key's seed and `i`, little-endian. No two places of a block and no two
/// blocks look alike, so the first wrong word shows a block that is shifted, torn or another key's. One multiplication
/// for 8 bytes is as fast as memory.
///
/// Half of all contents are bf16 values of few exponents, as keys and values have them, so that disks code them; the
/// others are of any.
///
/// **Threads.** Any number; it is a value.
///
/// @param seed of the content; equal seeds have equal bytes
public record BlockContent(long seed) {

    private static final boolean LITTLE_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    /// Words that are made at a time. A loop over an array and a bulk copy are fast long before a loop over a segment
    /// is compiled so that its checks cost nothing.
    private static final int CHUNK_WORDS = 256;

    /// The upper five bits of four bf16 exponents, and what they are: eight exponents remain.
    private static final long EXPONENT_BITS = 0x7C00_7C00_7C00_7C00L;

    private static final long EXPONENTS = 0x3800_3800_3800_3800L;

    /// 2^64 divided by the golden ratio, odd: multiplying by it spreads neighbouring numbers.
    private static final long HASH_MULTIPLIER = 0x9E37_79B9_7F4A_7C15L;

    /// The content of a key.
    public static BlockContent of(BlockKey key) {
        return of(key.hi(), key.lo());
    }

    /// The content of the key with these halves.
    public static BlockContent of(long keyHi, long keyLo) {
        return new BlockContent(mix(keyHi * HASH_MULTIPLIER + keyLo));
    }

    /// The content of another version of the same key, for objects that are overwritten.
    ///
    /// @param number of the version; each has other bytes
    public BlockContent withVersion(long number) {
        return new BlockContent(mix(seed + number * HASH_MULTIPLIER));
    }

    /// Fills the whole segment.
    public void fill(MemorySegment target) {
        fill(0, target);
    }

    /// Fills the segment with the bytes from `offset` of the content on.
    public void fill(long offset, MemorySegment target) {
        long size = target.byteSize();
        long at = Math.min(size, -offset & 7);
        for (long i = 0; i < at; i++) {
            target.set(ValueLayout.JAVA_BYTE, i, byteAt(offset + i));
        }
        long[] words = chunkFor(size - at);
        while (at + Long.BYTES <= size) {
            int count = makeWords(offset + at, size - at, words);
            MemorySegment.copy(words, 0, target, ValueLayout.JAVA_LONG_UNALIGNED, at, count);
            at += (long) count * Long.BYTES;
        }
        for (; at < size; at++) {
            target.set(ValueLayout.JAVA_BYTE, at, byteAt(offset + at));
        }
    }

    /// Returns where the segment first differs from the content, or -1.
    public long mismatch(MemorySegment found) {
        return mismatch(0, found);
    }

    /// Returns where the segment first differs from the content from `offset` on, as an offset of the segment, or -1.
    public long mismatch(long offset, MemorySegment found) {
        long size = found.byteSize();
        long at = Math.min(size, -offset & 7);
        for (long i = 0; i < at; i++) {
            if (found.get(ValueLayout.JAVA_BYTE, i) != byteAt(offset + i)) {
                return i;
            }
        }
        long[] words = chunkFor(size - at);
        MemorySegment expected = MemorySegment.ofArray(words);
        while (at + Long.BYTES <= size) {
            long bytes = (long) makeWords(offset + at, size - at, words) * Long.BYTES;
            long wrong = MemorySegment.mismatch(expected, 0, bytes, found, at, at + bytes);
            if (wrong >= 0) {
                return at + wrong;
            }
            at += bytes;
        }
        while (at < size && found.get(ValueLayout.JAVA_BYTE, at) == byteAt(offset + at)) {
            at++;
        }
        return at < size ? at : -1;
    }

    /// Throws unless the whole segment is this content.
    ///
    /// @throws AssertionError that names the first byte that differs
    public void requireEqual(MemorySegment found) {
        requireEqual(0, found);
    }

    /// Throws unless the segment is the bytes from `offset` of this content on.
    ///
    /// @throws AssertionError that names the first byte that differs
    public void requireEqual(long offset, MemorySegment found) {
        long at = mismatch(offset, found);
        if (at >= 0) {
            throw new AssertionError(String.format(
                    Locale.ROOT,
                    "byte %s of %s from offset %s is 0x%02x; content %016x has 0x%02x there",
                    at,
                    found.byteSize(),
                    offset,
                    found.get(ValueLayout.JAVA_BYTE, at) & 0xFF,
                    seed,
                    byteAt(offset + at) & 0xFF));
        }
    }

    /// The first `bytes` of the content, on the heap.
    public MemorySegment toHeapSegment(int bytes) {
        MemorySegment segment = MemorySegment.ofArray(new byte[bytes]);
        fill(segment);
        return segment;
    }

    private static long[] chunkFor(long bytes) {
        return new long[(int) Math.min(CHUNK_WORDS, bytes / Long.BYTES)];
    }

    /// Writes the words of the content from `offset` on: at most `bytes` bytes, and as many as fit.
    ///
    /// @return how many
    private int makeWords(long offset, long bytes, long[] into) {
        int count = (int) Math.min(into.length, bytes / Long.BYTES);
        for (int i = 0; i < count; i++) {
            long word = word(offset + (long) i * Long.BYTES);
            into[i] = LITTLE_ENDIAN ? word : Long.reverseBytes(word);
        }
        return count;
    }

    private byte byteAt(long offset) {
        return (byte) (word(offset & -Long.BYTES) >>> ((offset & 7) * Byte.SIZE));
    }

    private long word(long offset) {
        long mixed = (seed + offset) * HASH_MULTIPLIER;
        long any = mixed ^ mixed >>> 29;
        return (seed & 1) == 0 ? any : (any & ~EXPONENT_BITS) | EXPONENTS;
    }

    private static long mix(long value) {
        long mixed = (value ^ value >>> 32) * HASH_MULTIPLIER;
        return (mixed ^ mixed >>> 29) * HASH_MULTIPLIER;
    }
}
