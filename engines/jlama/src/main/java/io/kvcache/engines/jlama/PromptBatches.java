package io.kvcache.engines.jlama;

import java.util.Arrays;

/// Cuts the tokens to prefill into batches that Jlama's native library computes right.
///
/// That library multiplies in tiles of five rows and leaves out a corner of what remains: in a batch of
/// more than five rows, the last `rows mod 5` come out wrong (0.8.4, with AVX-512; the JVM's vectors do
/// not have it). A store would hand such rows to everybody. So batches are of a multiple of five, and one
/// to four rows that are left over make a batch of their own, which is right.
final class PromptBatches {

    /// Rows of a tile.
    static final int TILE_ROWS = 5;

    /// Jlama cuts longer batches itself, and not at a multiple of five.
    private static final int JLAMA_MAX_BATCH = Integer.getInteger("jlama.max_batch_size", 256);

    private PromptBatches() {}

    /// Sizes that add up to `tokens`, none of which Jlama cuts.
    static int[] of(int tokens) {
        return of(tokens, JLAMA_MAX_BATCH);
    }

    static int[] of(int tokens, int maxBatch) {
        int largest = maxBatch < TILE_ROWS ? Math.max(1, maxBatch) : maxBatch / TILE_ROWS * TILE_ROWS;
        int[] sizes = new int[tokens / largest + 2];
        int count = 0;
        int left = tokens;
        while (left > 0) {
            int size = Math.min(left, largest);
            size = size < TILE_ROWS ? size : size / TILE_ROWS * TILE_ROWS;
            sizes[count++] = size;
            left -= size;
        }
        return Arrays.copyOf(sizes, count);
    }
}
