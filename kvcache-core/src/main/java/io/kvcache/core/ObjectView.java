package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// A pinned object, in pieces.
///
/// **Ownership.** Who got the view closes it, once; a second close throws `IllegalStateException`.
public interface ObjectView extends AutoCloseable {

    /// Size of the object.
    long bytes();

    /// The object's bytes in order, read-only, in place.
    ///
    /// @throws IllegalStateException when the view is closed
    List<MemorySegment> pieces();

    /// Copies `bytes` from `offset` of the object to the start of `target`.
    ///
    /// @throws IndexOutOfBoundsException when the range does not lie in the object or the target is too small
    void copyTo(long offset, long bytes, MemorySegment target);

    @Override
    void close();
}
