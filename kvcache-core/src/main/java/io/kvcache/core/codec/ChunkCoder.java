package io.kvcache.core.codec;

import io.kvcache.core.memory.ChunkedCrc;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/// Codes chunks of bf16 values without loss, in three quarters of their bytes and a little more.
///
/// A bf16 value is a sign, an exponent of 8 bits and a mantissa of 7. In keys and values nearly all exponents of a
/// chunk lie in a window of 14, so a code of 4 bits stands for each: its distance from the window's top, or
/// [#ZERO] for exponent 0, or [#ESCAPE] for any other, which is written out beside the body.
///
/// ```
/// head     int32  top of the window | escapes << 8
/// body     16 KiB  s(0) | s(1) << 8                                   in lanes of 16 bits
///          16 KiB  s(2) | s(3) << 8
///          16 KiB  c(0) | c(1) << 4 | c(2) << 8 | c(3) << 12
/// escapes  one byte each: the exponents, in the order of their codes
/// ```
///
/// Lane i of the body is of the i-th values of the chunk's four quarters, `s` being sign and mantissa and `c`
/// the code. So no value moves to another lane, and longs, vectors of any width and GPUs code alike.
///
/// The window holds most of a sample of the chunk's exponents, wherever the largest lie: a few large values cost an
/// escape each, and no more.
///
/// **Speed.** The loops are over arrays of longs of four lanes, without branches, so that the compiler makes
/// vectors of them. What is not in the window is made good afterwards, from the codes.
///
/// **Threads.** One at a time: it has the memory of one chunk.
///
/// Source: the scheme of SplitZip (2026) with a window that outliers do not move and a code of its own for zero.
public final class ChunkCoder {

    /// Plain bytes of a chunk: what one checksum of [ChunkedCrc] covers.
    public static final int CHUNK_BYTES = ChunkedCrc.CHUNK_BYTES;

    /// Bytes of a coded chunk's body.
    public static final int BODY_BYTES = CHUNK_BYTES / 4 * 3;

    /// Instead of a head: the escapes have no room.
    public static final int NO_ROOM = -1;

    /// Code of exponent 0, where the window does not reach it.
    static final int ZERO = 14;

    /// Code of an exponent beyond the window.
    static final int ESCAPE = 15;

    private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final int QUARTER_BYTES = CHUNK_BYTES / 4;
    private static final int WORDS = QUARTER_BYTES / Long.BYTES;

    /// Words that are looked through for escapes together: most have none.
    private static final int RUN_WORDS = 32;

    /// One in each lane of 16 bits.
    private static final long ONES = 0x0001_0001_0001_0001L;

    private static final long LOW_BYTES = 0xFF * ONES;
    private static final long CODES = 0xF * ONES;
    private static final long MANTISSAS = 0x7F * ONES;
    private static final long LOW_SIGNS = 0x80 * ONES;
    private static final long TOP_BITS = 0x8000_8000_8000_8000L;

    /// Added to a code, it sets the lane's top bit when the code is [#ZERO] or above.
    private static final long BEYOND_WINDOW = (0x8000 - ZERO) * ONES;

    /// Added to an exponent, it sets the lane's top bit unless that is 0.
    private static final long NOT_ZERO = 0x7FFF * ONES;

    /// The lowest bit of each code.
    private static final long CODE_BITS = 0x1111_1111_1111_1111L;

    private final long[] values0 = new long[WORDS];
    private final long[] values1 = new long[WORDS];
    private final long[] values2 = new long[WORDS];
    private final long[] values3 = new long[WORDS];
    private final long[][] quarters = {values0, values1, values2, values3};
    private final long[] signs01 = new long[WORDS];
    private final long[] signs23 = new long[WORDS];
    private final long[] codes = new long[WORDS];

    /// Returns the number of escapes that a head announces.
    static int escapes(int head) {
        return head >>> 8;
    }

    /// Codes a chunk.
    ///
    /// @param plain [#CHUNK_BYTES] from an offset
    /// @param body takes [#BODY_BYTES]
    /// @param escapes takes at most `room` bytes
    /// @return the head, or [#NO_ROOM]; body and escapes hold nothing of use then
    public int encode(
            MemorySegment plain,
            long plainOffset,
            MemorySegment body,
            long bodyOffset,
            MemorySegment escapes,
            long escapesOffset,
            long room) {
        for (int quarter = 0; quarter < quarters.length; quarter++) {
            load(plain, plainOffset + (long) quarter * QUARTER_BYTES, quarters[quarter]);
        }
        int top = ExponentWindow.top(quarters);
        joinSigns(values0, values1, signs01);
        joinSigns(values2, values3, signs23);
        // With 256 more, so that no lane borrows from the next.
        long tops = (top + 0x100) * ONES;
        setCodes(values0, tops, codes);
        addCodes(values1, tops, 4, codes);
        addCodes(values2, tops, 8, codes);
        addCodes(values3, tops, 12, codes);
        long count = writeEscapes(escapes, escapesOffset, room);
        if (count > room) {
            return NO_ROOM;
        }
        store(signs01, body, bodyOffset);
        store(signs23, body, bodyOffset + QUARTER_BYTES);
        store(codes, body, bodyOffset + 2 * QUARTER_BYTES);
        return (int) (top | count << 8);
    }

    /// Decodes a chunk. Of bytes that no coder wrote it makes some chunk or other, so compare the checksum.
    ///
    /// @param escapes holds as many as the head says
    public void decode(
            int head,
            MemorySegment body,
            long bodyOffset,
            MemorySegment escapes,
            long escapesOffset,
            MemorySegment plain,
            long plainOffset) {
        load(body, bodyOffset, signs01);
        load(body, bodyOffset + QUARTER_BYTES, signs23);
        load(body, bodyOffset + 2 * QUARTER_BYTES, codes);
        long tops = ((head & 0xFF) + 0x100) * ONES;
        setValues(signs01, codes, 0, tops, values0);
        setUpperValues(signs01, codes, 4, tops, values1);
        setValues(signs23, codes, 8, tops, values2);
        setUpperValues(signs23, codes, 12, tops, values3);
        readEscapes(escapes, escapesOffset, escapes(head));
        for (int quarter = 0; quarter < quarters.length; quarter++) {
            store(quarters[quarter], plain, plainOffset + (long) quarter * QUARTER_BYTES);
        }
    }

    private static void load(MemorySegment from, long offset, long[] into) {
        MemorySegment.copy(from, WORD, offset, into, 0, WORDS);
    }

    private static void store(long[] from, MemorySegment into, long offset) {
        MemorySegment.copy(from, 0, into, WORD, offset, WORDS);
    }

    /// Signs and mantissas of two quarters, the second's in the upper bytes.
    private static void joinSigns(long[] lower, long[] upper, long[] into) {
        for (int i = 0; i < WORDS; i++) {
            long low = lower[i];
            long high = upper[i];
            into[i] = (low & MANTISSAS) | (low >>> 8 & LOW_SIGNS) | (high & MANTISSAS) << 8 | (high & TOP_BITS);
        }
    }

    private static void setCodes(long[] values, long tops, long[] into) {
        for (int i = 0; i < WORDS; i++) {
            into[i] = codes(values[i], tops);
        }
    }

    private static void addCodes(long[] values, long tops, int shift, long[] into) {
        for (int i = 0; i < WORDS; i++) {
            into[i] |= codes(values[i], tops) << shift;
        }
    }

    private static long codes(long values, long tops) {
        long exponents = values >>> 7 & LOW_BYTES;
        long distances = tops - exponents & LOW_BYTES;
        long beyond = (distances + BEYOND_WINDOW & TOP_BITS) >>> 15;
        long notZero = (exponents + NOT_ZERO & TOP_BITS) >>> 15;
        // 15 in each lane that is beyond, less one for zero.
        return (distances | (beyond << 4) - beyond) & CODES & ~(beyond & ~notZero);
    }

    private static void setValues(long[] signs, long[] codes, int shift, long tops, long[] into) {
        for (int i = 0; i < WORDS; i++) {
            long sign = signs[i];
            into[i] = exponents(codes[i] >>> shift & CODES, tops) << 7 | (sign & MANTISSAS) | (sign & LOW_SIGNS) << 8;
        }
    }

    private static void setUpperValues(long[] signs, long[] codes, int shift, long tops, long[] into) {
        for (int i = 0; i < WORDS; i++) {
            long sign = signs[i];
            into[i] = exponents(codes[i] >>> shift & CODES, tops) << 7 | (sign >>> 8 & MANTISSAS) | (sign & TOP_BITS);
        }
    }

    /// Exponents of codes, 0 for those that are not in the window.
    private static long exponents(long codes, long tops) {
        long beyond = (codes + BEYOND_WINDOW & TOP_BITS) >>> 15;
        return tops - codes & LOW_BYTES & ~((beyond << 8) - beyond);
    }

    /// The lowest bit of each code that is [#ESCAPE].
    private static long escaped(long codes) {
        return codes & codes >>> 1 & codes >>> 2 & codes >>> 3 & CODE_BITS;
    }

    /// @return how many there are; more than `room` when they have none
    private long writeEscapes(MemorySegment escapes, long escapesOffset, long room) {
        long count = 0;
        for (int run = 0; run < WORDS; run += RUN_WORDS) {
            if (hasEscapes(run)) {
                for (int i = run; i < run + RUN_WORDS; i++) {
                    long left = escaped(codes[i]);
                    long at = escapesOffset + count;
                    count += Long.bitCount(left);
                    if (count > room) {
                        return count;
                    }
                    for (; left != 0; left &= left - 1) {
                        int bit = Long.numberOfTrailingZeros(left);
                        long value = quarters[quarterOf(bit)][i] >>> laneShift(bit);
                        escapes.set(ValueLayout.JAVA_BYTE, at, (byte) (value >>> 7));
                        at++;
                    }
                }
            }
        }
        return count;
    }

    private boolean hasEscapes(int run) {
        long any = 0;
        for (int i = run; i < run + RUN_WORDS; i++) {
            any |= escaped(codes[i]);
        }
        return any != 0;
    }

    /// Puts exponents where there is none yet.
    private void readEscapes(MemorySegment escapes, long escapesOffset, int count) {
        int taken = 0;
        for (int run = 0; taken < count && run < WORDS; run += RUN_WORDS) {
            for (int i = hasEscapes(run) ? run : run + RUN_WORDS; i < run + RUN_WORDS; i++) {
                for (long left = escaped(codes[i]); left != 0 && taken < count; left &= left - 1) {
                    int bit = Long.numberOfTrailingZeros(left);
                    long exponent = escapes.get(ValueLayout.JAVA_BYTE, escapesOffset + taken) & 0xFF;
                    quarters[quarterOf(bit)][i] |= exponent << (7 + laneShift(bit));
                    taken++;
                }
            }
        }
    }

    private static int quarterOf(int bit) {
        return bit >>> 2 & 3;
    }

    private static int laneShift(int bit) {
        return bit & -Short.SIZE;
    }

    /// Chooses the window of exponents that holds most of a chunk's values, from a sample of them.
    static final class ExponentWindow {

        /// Exponents of a window.
        static final int SIZE = ChunkCoder.ZERO;

        private static final int EXPONENTS = 256;
        private static final int RUN_WORDS = 8;

        /// One run in sixteen: two thousand values, whose errors cost a few escapes.
        private static final int STRIDE_WORDS = 16 * RUN_WORDS;

        private ExponentWindow() {}

        /// Returns the top of the window: the largest exponent that has a code, from [#SIZE] to 255.
        ///
        /// @param quarters of the chunk, four values a word
        static int top(long[][] quarters) {
            // Two histograms, as neighbours are often alike, and one counter would wait for itself.
            int[] even = new int[EXPONENTS];
            int[] odd = new int[EXPONENTS];
            for (long[] values : quarters) {
                for (int run = 0; run < values.length; run += STRIDE_WORDS) {
                    for (int i = run; i < run + RUN_WORDS; i++) {
                        long word = values[i];
                        even[(int) (word >>> 7) & 0xFF]++;
                        odd[(int) (word >>> 23) & 0xFF]++;
                        even[(int) (word >>> 39) & 0xFF]++;
                        odd[(int) (word >>> 55) & 0xFF]++;
                    }
                }
            }
            return spareAbove(even, odd, fullestTop(even, odd));
        }

        /// Returns the highest top among those whose windows hold the most. Exponent 0 has a code anyway.
        private static int fullestTop(int[] even, int[] odd) {
            int inside = 0;
            int most = -1;
            int best = SIZE;
            for (int top = 1; top < EXPONENTS; top++) {
                inside += even[top] + odd[top];
                if (top > SIZE) {
                    inside -= even[top - SIZE] + odd[top - SIZE];
                }
                if (inside >= most) {
                    most = inside;
                    best = top;
                }
            }
            return Math.max(best, SIZE);
        }

        /// Lowers a window that is empty above until one exponent is left free there, for what the sample missed.
        private static int spareAbove(int[] even, int[] odd, int top) {
            int used = top;
            while (used > SIZE && even[used] + odd[used] == 0) {
                used--;
            }
            return used < top ? used + 1 : top;
        }
    }
}
