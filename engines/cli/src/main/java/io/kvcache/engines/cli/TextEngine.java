package io.kvcache.engines.cli;

import io.kvcache.engines.generator.EngineModel;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.JlamaOptions;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.LlamaLibrary;
import io.kvcache.engines.llamacpp.LlamaModel;
import io.kvcache.engines.llamacpp.LlamaOptions;
import io.kvcache.engines.llamacpp.RandomGguf;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// An engine with a loaded model that takes text, for the demo and for measurements.
///
/// **Ownership.** Closing it closes the model and removes what was made for it.
interface TextEngine extends AutoCloseable {

    EngineModel model();

    int[] encode(String text);

    /// The tokens of a text that goes on from another one.
    int[] encodeContinuation(String text);

    /// The model's name, and what computes it.
    String describe();

    @Override
    void close() throws IOException;

    /// llama.cpp with a model of random weights, to which a character is a token.
    record LlamaTextEngine(LlamaModel model) implements TextEngine {

        private static final int FIRST_TOKEN = 3;

        /// Makes the model's file, loads it and removes it: llama.cpp has it mapped.
        ///
        /// @param named the library; the one of the class path when there is none
        static LlamaTextEngine random(RandomGguf weights, LlamaOptions options, Optional<Path> named)
                throws IOException {
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

    /// A model that Jlama has loaded: the one that the user named, or one of random weights in a folder
    /// for temporary files, which goes when this is closed.
    static final class JlamaTextEngine implements TextEngine {

        /// A folder in the temporary one, so that a fingerprint shows a name that is the same every time.
        private static final String DIRECTORY_NAME = "random-llama";

        /// Kept, because a logger without a reference forgets its level.
        private static final Logger JLAMA = Logger.getLogger("com.github.tjake");

        private final @Nullable Path temporary;
        private final JlamaModel model;

        private JlamaTextEngine(@Nullable Path temporary, JlamaModel model) {
            this.temporary = temporary;
            this.model = model;
        }

        /// Loads the model of a directory, or makes one of random weights if no directory is given.
        ///
        /// @throws IOException when the directory has no model, or the disk has no room for a random one
        public static JlamaTextEngine open(Optional<Path> directory) throws IOException {
            return directory.isPresent()
                    ? new JlamaTextEngine(null, load(directory.get()))
                    : random(RandomLlama.MEDIUM);
        }

        static JlamaTextEngine random(RandomLlama weights) throws IOException {
            Path folder = Files.createTempDirectory("kvcache-llama");
            try {
                return new JlamaTextEngine(folder, load(weights.write(folder.resolve(DIRECTORY_NAME))));
            } catch (IOException | RuntimeException failed) {
                delete(folder);
                throw failed;
            }
        }

        /// Without Jlama's news about it.
        private static JlamaModel load(Path directory) throws IOException {
            JLAMA.setLevel(Level.WARNING);
            return JlamaModel.load(directory, JlamaOptions.defaults());
        }

        @Override
        public JlamaModel model() {
            return model;
        }

        @Override
        public int[] encode(String text) {
            return model.encode(text);
        }

        @Override
        public int[] encodeContinuation(String text) {
            return model.encodeContinuation(text);
        }

        @Override
        public String describe() {
            return model.fingerprint().model() + ", Jlama "
                    + model.fingerprint().build();
        }

        @Override
        public void close() throws IOException {
            model.close();
            if (temporary != null) {
                delete(temporary);
            }
        }

        private static void delete(Path folder) throws IOException {
            List<Path> deepestFirst;
            try (Stream<Path> all = Files.walk(folder)) {
                deepestFirst = all.sorted(Comparator.reverseOrder()).toList();
            }
            for (Path each : deepestFirst) {
                Files.delete(each);
            }
        }
    }
}
