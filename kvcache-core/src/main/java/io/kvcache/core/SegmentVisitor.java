package io.kvcache.core;

import java.lang.foreign.MemorySegment;

/// Visits the pieces of an object in order.
///
/// A piece is a range of a larger memory, not a segment of its own, so that no object is allocated for each of the
/// 256 pieces of an object of 256 MiB.
@FunctionalInterface
public interface SegmentVisitor {

    /// The next piece is `[from, from + bytes)` of a memory.
    void visitSegment(MemorySegment memory, long from, long bytes);
}
