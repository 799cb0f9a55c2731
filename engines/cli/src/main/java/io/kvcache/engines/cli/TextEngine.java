package io.kvcache.engines.cli;

import io.kvcache.engines.generator.TextModel;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.JlamaOptions;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.LlamaLibrary;
import io.kvcache.engines.llamacpp.LlamaLibrary.UnsupportedLlamaException;
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

/// An engine with a loaded model that takes text, for the chat server, the demo and measurements.
///
/// **Ownership.** Closing it closes the model and removes what was made for it.
interface TextEngine extends AutoCloseable {

    TextModel model();

    /// Returns what computes the model: the engine and its build.
    String build();

    /// The model's name, and what computes it.
    default String describe() {
        return model().name() + ", " + build();
    }

    @Override
    void close() throws IOException;

    /// A model that llama.cpp has loaded: the one that the user named, or one of random weights.
    record LlamaTextEngine(LlamaModel model) implements TextEngine {

        /// Loads the model of a file, or makes one of random weights if no file is given.
        ///
        /// @param library the library's file; the one of the class path when there is none
        /// @throws IOException when the file or the library cannot be used, or the model takes no text
        static LlamaTextEngine open(Optional<Path> file, LlamaOptions options, Optional<Path> library)
                throws IOException {
            try {
                return file.isPresent()
                        ? load(file.get(), options, library)
                        : random(RandomGguf.MEDIUM, options, library);
            } catch (IllegalStateException | UnsupportedLlamaException refused) {
                throw new IOException(refused.getMessage(), refused);
            }
        }

        private static LlamaTextEngine load(Path file, LlamaOptions options, Optional<Path> library)
                throws IOException {
            LlamaModel model = LlamaModel.load(library(library), file, options);
            if (!model.hasTokenizer()) {
                model.close();
                throw new IOException(file + " has no tokenizer, so it takes no text: name a file that has one");
            }
            return new LlamaTextEngine(model);
        }

        private static LlamaLibrary library(Optional<Path> named) throws IOException {
            return named.isPresent() ? LlamaLibrary.open(named.get()) : LlamaLibrary.bundled();
        }

        /// Makes the model's file, loads it and removes it: llama.cpp has it mapped.
        ///
        /// @param named the library; the one of the class path when there is none
        static LlamaTextEngine random(RandomGguf weights, LlamaOptions options, Optional<Path> named)
                throws IOException {
            LlamaLibrary library = library(named);
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
        public String build() {
            return "llama.cpp " + model.fingerprint().build();
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
        public String build() {
            return "Jlama " + model.fingerprint().build();
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
