package io.kvcache.bench.engine;

import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.ModelOptions;
import io.kvcache.engines.jlama.RandomLlama;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;

/// A model of random weights in a folder for temporary files, which goes when it is closed.
final class TemporaryModel implements AutoCloseable {

    /// What is in a folder for temporary files, so that a fingerprint shows a name that is the same every
    /// time.
    private static final String NAME = "random-llama";

    /// Kept, because a logger that nobody keeps forgets its level.
    private static final Logger JLAMA = Logger.getLogger("com.github.tjake");

    private final Path folder;
    private final JlamaModel model;

    private TemporaryModel(Path folder, JlamaModel model) {
        this.folder = folder;
        this.model = model;
    }

    static TemporaryModel of(RandomLlama weights) throws IOException {
        Path folder = Files.createTempDirectory("kvcache-llama");
        try {
            return new TemporaryModel(folder, load(weights.write(folder.resolve(NAME))));
        } catch (IOException | RuntimeException failed) {
            delete(folder);
            throw failed;
        }
    }

    /// Loads a model without Jlama's news about it.
    static JlamaModel load(Path directory) throws IOException {
        JLAMA.setLevel(Level.WARNING);
        return JlamaModel.load(directory, ModelOptions.defaults());
    }

    JlamaModel model() {
        return model;
    }

    @Override
    public void close() throws IOException {
        model.close();
        delete(folder);
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
