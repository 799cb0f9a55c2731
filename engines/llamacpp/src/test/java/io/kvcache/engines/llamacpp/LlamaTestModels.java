package io.kvcache.engines.llamacpp;

import io.kvcache.engines.generator.UncachedAnswer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;

/// The library and the models that all tests of this JVM use, and what they say without any store.
final class LlamaTestModels {

    /// One thread: the others of llama.cpp's spin while they wait, which takes the processor from tests.
    static final LlamaOptions OPTIONS = LlamaOptions.defaults().withThreads(1);

    private LlamaTestModels() {}

    private static final class Library {
        static final LlamaLibrary LOADED = load();

        private static LlamaLibrary load() {
            NativeRequirements.assume();
            try {
                return LlamaLibrary.bundled();
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
    }

    private static final class Small {
        static final LlamaModel MODEL = load(RandomGguf.SMALL, "small.gguf", OPTIONS);
    }

    static LlamaLibrary library() {
        return Library.LOADED;
    }

    /// One for all; nobody closes it.
    static LlamaModel small() {
        return Small.MODEL;
    }

    static LlamaModel load(RandomGguf weights, String name, LlamaOptions options) {
        try {
            return LlamaModel.load(library(), weights.write(Path.of("target", "models", name)), options);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /// What llama.cpp says by itself, of a prompt that is computed at once.
    static UncachedAnswer generateUncached(LlamaModel model, int[] prompt, int count) {
        int[] all = Arrays.copyOf(prompt, prompt.length + count);
        try (LlamaContext context = model.newContext()) {
            context.decode(prompt, 0, prompt.length);
            float[] first = logits(context);
            for (int i = prompt.length; i < all.length; i++) {
                float[] logits = logits(context);
                for (int token = 1; token < logits.length; token++) {
                    all[i] = logits[token] > logits[all[i]] ? token : all[i];
                }
                context.decode(all, i, i + 1);
            }
            return new UncachedAnswer(Arrays.copyOfRange(all, prompt.length, all.length), first);
        }
    }

    /// What the model says after the last token.
    static float[] logits(LlamaContext context) {
        return context.logits().toArray(ValueLayout.JAVA_FLOAT);
    }
}
