package io.kvcache.bench.log;

/// Makes tokens of what was logged. Equal beginnings must have equal first tokens.
@FunctionalInterface
public interface LogTokenizer {

    /// The tokens of a prompt.
    ///
    /// @throws RuntimeException when it has none, with the reason for people
    int[] tokens(LoggedPrompt prompt);
}
