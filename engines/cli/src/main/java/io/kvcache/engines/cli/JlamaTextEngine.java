package io.kvcache.engines.cli;

import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.JlamaOptions;
import io.kvcache.engines.jlama.RandomLlama;
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

/// A model that Jlama has loaded: the one that the user named, or one of random weights in a folder
/// for temporary files, which goes when this is closed.
final class JlamaTextEngine implements TextEngine {

    /// A folder in the temporary one, so that a fingerprint shows a name that is the same every time.
    private static final String DIRECTORY_NAME = "random-llama";

    /// Kept, because a logger that nobody keeps forgets its level.
    private static final Logger JLAMA = Logger.getLogger("com.github.tjake");

    private final @Nullable Path temporary;
    private final JlamaModel model;

    private JlamaTextEngine(@Nullable Path temporary, JlamaModel model) {
        this.temporary = temporary;
        this.model = model;
    }

    /// Loads the model of a directory, or makes one of random weights where there is none.
    ///
    /// @throws IOException when the directory has no model, or there is no room for one
    public static JlamaTextEngine open(Optional<Path> directory) throws IOException {
        return directory.isPresent() ? new JlamaTextEngine(null, load(directory.get())) : random(RandomLlama.MEDIUM);
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
        return model.fingerprint().model() + ", Jlama " + model.fingerprint().build();
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
