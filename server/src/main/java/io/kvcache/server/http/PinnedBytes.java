package io.kvcache.server.http;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.server.keyspace.PinnedValue;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Bytes of the store on their way to a client.
///
/// **Ownership.** Whoever is given them calls [#release], once.
///
/// @param bytes how many
/// @param segments shows the memory of a range of them
/// @param release gives them free
public record PinnedBytes(long bytes, SegmentSource segments, Runnable release) {

    /// Shows the memory of a range, piece by piece in order, in place.
    @FunctionalInterface
    public interface SegmentSource {
        /// Shows the range.
        ///
        /// @throws IndexOutOfBoundsException when it does not lie in the bytes
        void visit(long offset, long length, SegmentVisitor each);
    }

    /// A value of the keyspace.
    static PinnedBytes of(PinnedValue value) {
        return new PinnedBytes(value.bytes(), value::visit, value::close);
    }

    /// A single run of memory.
    public static PinnedBytes of(MemorySegment segment, Runnable release) {
        return new PinnedBytes(
                segment.byteSize(),
                (offset, length, each) -> {
                    Objects.checkFromIndexSize(offset, length, segment.byteSize());
                    if (length > 0) {
                        each.visitSegment(segment, offset, length);
                    }
                },
                release);
    }
}
