package io.kvcache.engines.generator;

/// Hears of tokens as they come.
@FunctionalInterface
public interface TokenListener {

    /// Does nothing.
    TokenListener NONE = _ -> true;

    /// Takes a token, on the thread that generates.
    ///
    /// @return whether to go on
    boolean accept(int token);
}
