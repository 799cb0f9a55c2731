package io.kvcache.engines.cli;

import io.kvcache.engines.llamacpp.LlamaLibrary;
import io.kvcache.engines.llamacpp.LlamaModel;
import io.kvcache.engines.llamacpp.LlamaOptions;
import io.kvcache.engines.llamacpp.RandomGguf;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// llama.cpp with a model of random weights, to which a character is a token.
record LlamaTextEngine(LlamaModel model) implements TextEngine {

    private static final int FIRST_TOKEN = 3;

    /// Makes the model's file, loads it and removes it: llama.cpp has it mapped.
    ///
    /// @param named the library; the one of the class path when there is none
    static LlamaTextEngine random(RandomGguf weights, LlamaOptions options, Optional<Path> named) throws IOException {
        LlamaLibrary library = named.isPresent() ? LlamaLibrary.open(named.get()) : LlamaLibrary.bundled();
        Path folder = Files.createTempDirectory("kvcache-llama");
        Path file = folder.resolve("random-llama.gguf");
        try {
            return new LlamaTextEngine(LlamaModel.load(library, weights.write(file), options));
        } finally {
            Files.deleteIfExists(file);
            Files.delete(folder);
        }
    }

    @Override
    public int[] encode(String text) {
        return text.chars()
                .map(character -> FIRST_TOKEN + character % (RandomGguf.VOCABULARY - FIRST_TOKEN))
                .toArray();
    }

    @Override
    public int[] encodeContinuation(String text) {
        return encode(text);
    }

    @Override
    public String describe() {
        return model.fingerprint().model() + ", llama.cpp "
                + model.fingerprint().build();
    }

    @Override
    public void close() {
        model.close();
    }
}
