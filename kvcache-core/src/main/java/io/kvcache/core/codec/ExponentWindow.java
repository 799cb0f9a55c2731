package io.kvcache.core.codec;

/// Chooses the window of exponents that holds most of a chunk's values, from a sample of them.
final class ExponentWindow {

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
