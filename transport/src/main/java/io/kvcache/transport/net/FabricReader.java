package io.kvcache.transport.net;

import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Reads another process's slots one-sided, over a fabric. It returns the bytes that lie there at that moment. The
/// caller must verify that they belong to the block it wants.
///
/// **Ownership.** The caller that connects it closes it.
///
/// **Threads.** Any; one after the other.
public interface FabricReader extends AutoCloseable {

    /// One piece of another process's slots.
    ///
    /// @param offset from the first slot
    /// @param into native memory, as large as the piece
    record RemoteRead(long offset, MemorySegment into) {}

    /// Result of a read.
    enum Outcome {
        /// All bytes are here.
        DONE,
        /// Bytes are missing, and the fabric writes to the buffers no more.
        FAILED,
        /// Bytes are missing, and the fabric may write to the buffers at any time: never use them again.
        BUFFERS_UNSAFE
    }

    /// Returns whether the reader has not failed. A failed one stays unusable.
    boolean isUsable();

    /// Returns whether a range of bytes lies in the slots.
    boolean contains(long offset, long bytes);

    /// Reads all pieces, or fails.
    ///
    /// @param pieces each in the slots
    /// @param timeoutNanos for all of them
    Outcome read(List<RemoteRead> pieces, long timeoutNanos);

    /// Ends the connection, after a read that is in progress.
    @Override
    void close();

    /// Connects over UCX, in a module of its own that `ServiceLoader` finds.
    interface Provider {

        /// Connects to the process that offers the slots.
        ///
        /// @param transports as UCX names them; empty for all that there are
        /// @throws IOException when UCX is missing, or has no way there
        FabricReader connect(FabricDescriptor place, String transports) throws IOException;
    }
}
