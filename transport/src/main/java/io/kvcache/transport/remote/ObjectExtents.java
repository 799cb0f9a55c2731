package io.kvcache.transport.remote;

import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Where an object lies in the server's memory, as it was told.
///
/// @param extents in order, of the slots
record ObjectExtents(int checksum, long handle, List<Extent> extents) {

    /// @param offset in the slots
    record Extent(long offset, long bytes) {}

    /// Reads what follows `sent` in the reply to GET_OBJECT; null when nothing does.
    static @Nullable ObjectExtents read(BodyReader body) throws ProtocolException {
        if (!body.hasRemaining()) {
            return null;
        }
        int checksum = body.skip(3).i32("checksum");
        long handle = body.i64("handle");
        int count = body.count("pieces");
        body.skip(Integer.BYTES);
        List<Extent> spans = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            spans.add(new Extent(body.i64("offset"), body.i64("bytes")));
        }
        return new ObjectExtents(checksum, handle, List.copyOf(spans));
    }

    /// The memory of all of it; null when it does not lie in the slots, or is not as long as it should be.
    @Nullable
    List<MemorySegment> resolve(SharedStore store, long bytes) {
        List<MemorySegment> pieces = new ArrayList<>();
        long left = bytes;
        for (Extent extent : extents) {
            MemorySegment piece = store.span(extent.offset, extent.bytes);
            if (piece == null) {
                return null;
            }
            pieces.add(piece);
            left -= extent.bytes;
        }
        return left == 0 && store.isValidHandle(handle) ? List.copyOf(pieces) : null;
    }
}
