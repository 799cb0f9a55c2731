package io.kvcache.engines.jlama;

import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.tensor.AbstractTensor;
import com.github.tjake.jlama.tensor.KvBufferCache;
import com.github.tjake.jlama.tensor.KvBufferCache.KvBuffer;
import io.kvcache.engines.generator.UncachedAnswer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;

/// Models that all tests of this JVM use, and what they say without any store.
final class JlamaTestModels {

    /// Rows that every kernel computes right at once.
    private static final int BATCH_TOKENS = 5;

    private JlamaTestModels() {}

    private static final class Small {
        static final JlamaModel MODEL = load(RandomLlama.SMALL, "small");
    }

    /// One for all; nobody closes it.
    static JlamaModel small() {
        return Small.MODEL;
    }

    static JlamaModel load(RandomLlama weights, String name) {
        try {
            Path folder = weights.write(Path.of("target", "models", name));
            return JlamaModel.load(folder, JlamaOptions.defaults());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /// What Jlama says by itself, computed in batches of at most five tokens.
    static UncachedAnswer generateUncached(JlamaModel model, int[] prompt, int count) {
        AbstractModel engine = model.engine();
        int[] tokens = new int[count];
        float[] first = new float[model.vocabulary()];
        try (KvBufferCache buffers = new KvBufferCache(engine);
                KvBuffer buffer = buffers.getEphemeralKvBuffer();
                AbstractTensor<?, ?> logits = engine.makeDenseTensor(model.vocabulary())) {
            int next = 0;
            for (int at = 0; at < prompt.length; at += BATCH_TOKENS) {
                int[] some = Arrays.copyOfRange(prompt, at, Math.min(prompt.length, at + BATCH_TOKENS));
                try (AbstractTensor<?, ?> rows = engine.batchForward(some, at, buffer)) {
                    next = engine.sample(rows.slice(some.length - 1), 0, 0, logits);
                }
            }
            for (int i = 0; i < first.length; i++) {
                first[i] = logits.get(0, i);
            }
            for (int i = 0; i < count; i++) {
                tokens[i] = next;
                try (AbstractTensor<?, ?> row = engine.forward(next, prompt.length + i, buffer, Optional.empty())) {
                    next = engine.sample(row, 0, 0, logits);
                }
            }
        }
        return new UncachedAnswer(tokens, first);
    }
}
