package io.kvcache.planner.serving;

import java.io.IOException;

/// A server that continues prompts of tokens.
///
/// **Threads.** Any number at once.
public interface CompletionServer {

    /// Where it is, for people.
    String address();

    /// The model that it serves.
    String model();

    /// Has a prompt continued, and waits for the end of the answer.
    ///
    /// @param prompt tokens, at least one
    /// @param maxTokens of the answer, at least 1
    /// @throws IOException when the answer does not come, or is another one than wanted; the message says why
    Completion complete(int[] prompt, int maxTokens) throws IOException, InterruptedException;

    /// One answer.
    ///
    /// @param firstTokenSeconds from the call to the first token
    /// @param totalSeconds from the call to the end
    /// @param promptTokens as the server counts them
    /// @param cachedTokens of these, that it found in its cache
    /// @param outputTokens of the answer
    record Completion(
            double firstTokenSeconds, double totalSeconds, int promptTokens, int cachedTokens, int outputTokens) {}
}
