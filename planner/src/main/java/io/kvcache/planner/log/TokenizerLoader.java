package io.kvcache.planner.log;

import io.kvcache.planner.log.LoggedRequest.LoggedPrompt;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.ServiceLoader;

/// Loads the tokenizers of models: a service, as the planner has no inference engine. `kvcache-engines-cli`
/// provides it by
/// Jlama.
///
/// A provider is a public class with a public constructor without parameters, named in
/// `META-INF/services/io.kvcache.planner.log.TokenizerLoader`.
public interface TokenizerLoader {

    /// Loads a tokenizer.
    ///
    /// @param folder of a model, as Hugging Face lays it out; its weights are not needed
    /// @throws IOException that names the file that is missing or wrong
    LogTokenizer load(Path folder) throws IOException;

    /// Returns the first provider on the class path.
    static Optional<TokenizerLoader> find() {
        return ServiceLoader.load(TokenizerLoader.class).findFirst();
    }

    /// Makes tokens of what was logged. Equal beginnings must have equal first tokens.
    @FunctionalInterface
    public interface LogTokenizer {

        /// The tokens of a prompt.
        ///
        /// @throws RuntimeException when it has none, with the reason for people
        int[] tokens(LoggedPrompt prompt);
    }
}
