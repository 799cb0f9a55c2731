package io.kvcache.engines.jlama;

import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.tensor.AbstractTensor;
import com.github.tjake.jlama.tensor.KvBufferCache;
import com.github.tjake.jlama.tensor.KvBufferCache.KvBuffer;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.engines.generator.EngineSequence;
import java.util.Arrays;
import java.util.Optional;
import java.util.SplittableRandom;

/// One sequence in the model: the keys and values of its tokens so far, and the way to the next one.
///
/// **Ownership.** Its pages are Jlama's; closing gives them back.
///
/// **Threads.** One at a time.
final class JlamaSequence implements EngineSequence {

    private final AbstractModel model;
    private final BlockShape shape;
    private final KvBuffer buffer;
    private final AbstractTensor<?, ?> logits;
    private final float temperature;
    private final SplittableRandom random;

    /// Tokens whose keys and values are here.
    private int tokens;

    private boolean closed;

    /// @param buffers our own, beside the model's: its pages stay in memory and have no files
    JlamaSequence(AbstractModel model, KvBufferCache buffers, BlockShape shape, float temperature, long seed) {
        this.model = model;
        this.shape = shape;
        this.temperature = temperature;
        buffer = buffers.getEphemeralKvBuffer();
        logits = model.makeDenseTensor(model.getConfig().vocabularySize);
        random = new SplittableRandom(seed);
    }

    @Override
    public JlamaKvPages blocks(int count) {
        return new JlamaKvPages(buffer, shape, count * shape.blockTokens());
    }

    @Override
    public int tokenCount() {
        return tokens;
    }

    @Override
    public void truncate(int count) {
        tokens = count;
    }

    @Override
    public int prefill(int[] prompt) {
        int next = 0;
        for (int batch : PromptBatches.of(prompt.length - tokens)) {
            int[] some = Arrays.copyOfRange(prompt, tokens, tokens + batch);
            try (AbstractTensor<?, ?> rows = model.batchForward(some, tokens, buffer)) {
                tokens += batch;
                if (tokens == prompt.length) {
                    next = sample(rows.slice(rows.shape().first() - 1));
                }
            }
        }
        return next;
    }

    @Override
    public int decode(int token) {
        try (AbstractTensor<?, ?> row = model.forward(token, tokens, buffer, Optional.empty())) {
            tokens++;
            return sample(row);
        }
    }

    private int sample(AbstractTensor<?, ?> row) {
        int token = model.sample(row, temperature, (float) random.nextDouble(), logits);
        if (token < 0 || token >= model.getConfig().vocabularySize) {
            throw new IllegalStateException("what the model says after " + tokens + " tokens is not a number");
        }
        return token;
    }

    @Override
    public float[] logits() {
        float[] copy = new float[model.getConfig().vocabularySize];
        for (int i = 0; i < copy.length; i++) {
            copy[i] = logits.get(0, i);
        }
        return copy;
    }

    /// Jlama would hand out a tensor twice that was given back twice; so a second close does nothing.
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            logits.close();
            buffer.close();
        }
    }

    /// Cuts the tokens to prefill into batches that Jlama's native library computes right.
    ///
    /// That library multiplies in tiles of five rows and leaves out a corner of what remains: in a batch of
    /// more than five rows, the last `rows mod 5` come out wrong (0.8.4, with AVX-512; the JVM's vectors do
    /// not have it). A store would hand such rows to every reader. So batches are of a multiple of five, and one
    /// to four rows that are left over make a batch of their own, which is right.
    static final class PromptBatches {

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
}
