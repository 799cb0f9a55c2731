package io.kvcache.core.tier;

/// The blocks and objects of a span of a tier that is about to be reclaimed, and which of them are kept.
///
/// Not all can be: the store begins with what is worth most.
public interface ReclaimCandidates {

    /// Blocks and objects on offer.
    int size();

    long keyHi(int index);

    long keyLo(int index);

    /// Returns the address of a candidate.
    long address(int index);

    /// Keeps one.
    ///
    /// @return false when no more, or nothing as large, can be kept
    boolean keep(int index);
}
