package io.kvcache.engines.generator;

import io.kvcache.core.RequestKind;

/// The generated tokens, and the store's share in them.
///
/// @param tokens in their order
/// @param firstLogits what the model said of every token of the vocabulary at the end of the prompt, for
///     a temperature of 0; weights to be drawn by for another
/// @param endReason why the generation ended
/// @param promptTokens of the prompt
/// @param cachedTokens of the prompt, whose keys and values came from the store
/// @param verified whether they were computed all the same and compared; those that differed do not count
///     as cached
/// @param timings what took how long
@SuppressWarnings("ArrayRecordComponent")
public record Generation(
        int[] tokens,
        float[] firstLogits,
        EndReason endReason,
        int promptTokens,
        int cachedTokens,
        boolean verified,
        Timings timings) {

    /// Why a text ends.
    public enum EndReason {
        /// The model said so, by a token that stops.
        STOP,
        /// There are as many tokens as were asked for, or as the model can have.
        LENGTH,
        /// The listener wanted no more.
        CANCELLED;

        /// Returns the kind of request that a generation which ended so belongs to: a complete answer awaits what
        /// a person says to it, one that was cut off does not.
        public RequestKind requestKind() {
            return this == LENGTH ? RequestKind.OTHER : RequestKind.CHAT;
        }
    }

    /// Durations in nanoseconds, from when the model was free for this request.
    ///
    /// @param lookupNanos to hash the prompt and to ask the store, until the blocks were there
    /// @param importNanos to copy them to where the model reads them
    /// @param prefillNanos to compute the rest of the prompt, and a verification
    /// @param firstTokenNanos until the first token was known, all of the above and its choice included
    /// @param totalNanos until the last one was
    public record Timings(
            long lookupNanos, long importNanos, long prefillNanos, long firstTokenNanos, long totalNanos) {}
}
