package io.kvcache.engines.generator;

import java.lang.foreign.MemorySegment;

/// The first blocks of a sequence, in the order of their tokens.
///
/// **Threads.** Any, as long as nobody changes the sequence.
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

    /// Whether a block of the sequence is what another sequence of the model has there.
    ///
    /// @param tolerance of elements, see [EngineModel#tolerance()]; 0 for equal bytes
    boolean matches(int block, SequenceBlockCopier other, double tolerance);
}
