package io.kvcache.server.http;

import io.kvcache.core.SegmentVisitor;
import io.kvcache.server.keyspace.Value;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Bytes of the store on their way to a client.
///
/// **Ownership.** Whoever is given them calls [#release], once.
///
/// @param bytes how many
/// @param cut shows the memory of a range of them
/// @param release gives them free
public record HeldBytes(long bytes, Cut cut, Runnable release) {

    /// Shows the memory of a range, piece by piece in order, in place.
    @FunctionalInterface
    public interface Cut {
        /// Shows the range.
        ///
        /// @throws IndexOutOfBoundsException when it does not lie in the bytes
        void visit(long offset, long length, SegmentVisitor each);
    }

    /// A value of the keyspace.
    static HeldBytes of(Value value) {
        return new HeldBytes(value.bytes(), value::visit, value::close);
    }

    /// A single run of memory.
    public static HeldBytes of(MemorySegment segment, Runnable release) {
        return new HeldBytes(
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
