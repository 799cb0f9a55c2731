package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// A pinned object, in pieces.
///
/// **Ownership.** The caller that got the view closes it; a second close does nothing.
public interface ObjectView extends AutoCloseable {

    /// Size of the object.
    long bytes();

    /// Visits the memory of a range of the object, in order and read-only.
    ///
    /// @throws IllegalStateException when the view is closed
    /// @throws IndexOutOfBoundsException when the range does not lie in the object
    void visit(long offset, long bytes, SegmentVisitor each);

    /// The object's bytes in order, read-only, in place.
    ///
    /// @throws IllegalStateException when the view is closed
    default List<MemorySegment> segments() {
        List<MemorySegment> pieces = new ArrayList<>();
        visit(0, bytes(), (memory, from, bytes) -> pieces.add(memory.asSlice(from, bytes)));
        return pieces;
    }

    /// The checksum that was computed when the object was sealed: [io.kvcache.core.memory.ChunkedCrc] over its
    /// bytes and then those of its key, without a break between them.
    ///
    /// @throws IllegalStateException when the view is closed
    int checksum();

    /// Returns the record handle of the object, for clients that map the store's memory.
    ///
    /// @return a [io.kvcache.core.tree.RecordHandle]; [io.kvcache.core.tree.RecordHandle#MISS] of a view that has
    ///     no record
    /// @throws IllegalStateException when the view is closed
    long handle();

    /// Returns whether everything read so far was this object: as [BlockTable#isValid].
    boolean isValid();

    /// Copies `bytes` from `offset` of the object to the start of `target`.
    ///
    /// @throws IndexOutOfBoundsException when the range does not lie in the object or the target is too small
    void copyTo(long offset, long bytes, MemorySegment target);

    @Override
    void close();
}
