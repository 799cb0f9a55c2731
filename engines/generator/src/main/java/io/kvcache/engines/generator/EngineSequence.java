package io.kvcache.engines.generator;

import java.lang.foreign.MemorySegment;

/// One sequence in a model: the state of its tokens so far, and the way to the next one.
///
/// **Threads.** One at a time.
public interface EngineSequence extends AutoCloseable {

    /// Returns the number of tokens whose state the sequence has.
    int tokenCount();

    /// Returns the first blocks, to copy them out, or to copy them in if the sequence has no tokens yet.
    SequenceBlockCopier blocks(int count);

    /// Keeps the first tokens of the copied state, which are right, and discards the rest.
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

    /// Returns a copy of the logits of the last token.
    float[] logits();

    /// Gives its memory back. May be called more than once.
    @Override
    void close();

    /// The first blocks of a sequence, in the order of their tokens.
    ///
    /// **Threads.** Any, as long as no thread changes the sequence.
    public interface SequenceBlockCopier {

        /// Copies a block into the sequence, after the one before it.
        ///
        /// @param block its number
        /// @param from of the namespace's size
        /// @return whether it is one that the sequence can have there; if not, nothing was copied
        boolean copyIn(int block, MemorySegment from);

        /// Copies a block out of the sequence.
        ///
        /// @param into of the namespace's size
        void copyOut(int block, MemorySegment into);

        /// Returns whether a block of the sequence is what another sequence of the model has there.
        ///
        /// @param tolerance of elements, see [EngineModel#tolerance()]; 0 for equal bytes
        boolean matches(int block, SequenceBlockCopier other, double tolerance);
    }
}
