package io.kvcache.core;

import java.lang.foreign.MemorySegment;

/// Is shown where the bytes of an object lie, piece by piece in order.
///
/// A place in a larger memory instead of a segment of its own, so that nothing has to be made for each piece: an
/// object of 256 MiB has 256.
@FunctionalInterface
public interface SegmentVisitor {

    /// The next piece is `[from, from + bytes)` of a memory.
    void visitSegment(MemorySegment memory, long from, long bytes);
}
