package io.kvcache.engines.generator;

/// One sequence in a model: the state of its tokens so far, and the way to the next one.
///
/// **Threads.** One at a time.
public interface EngineSequence extends AutoCloseable {

    /// Tokens whose state is here.
    int tokenCount();

    /// The first blocks, to copy them out, or in where there are no tokens yet.
    SequenceBlockCopier blocks(int count);

    /// Says that of what was copied in, the first tokens are right; the rest is forgotten.
    ///
    /// @param count whole blocks
    void truncate(int count);

    /// Computes the tokens of the prompt that are not here yet, at least one.
    ///
    /// @return the token after the prompt
    int prefill(int[] prompt);

    /// Computes one more token.
    ///
    /// @return the token after it
    int decode(int token);

    /// What the last choice was made from, by token. A copy.
    float[] logits();

    /// Gives its memory back. May be called more than once.
    @Override
    void close();
}
