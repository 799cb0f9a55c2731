package io.kvcache.engines.generator;

/// Turns the tokens of one answer into text, as they come.
///
/// A character may be spread over several tokens: it comes with the last of them. Bytes that are not UTF-8 become
/// U+FFFD.
///
/// **Threads.** Those that generate, one at a time.
public interface TextDecoder {

    /// The text that a token completes; perhaps none. Special tokens have none.
    String add(int token);

    /// Returns the rest at the end.
    String flush();
}
