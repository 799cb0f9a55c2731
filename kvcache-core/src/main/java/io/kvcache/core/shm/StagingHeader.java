package io.kvcache.core.shm;

import io.kvcache.core.memory.Pages;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/// The first page of a file that a client writes into. It names the client that the server made the file for, so
/// that a client with the path of another client's file does not write there.
///
/// ```
///  0  8 bytes  "KVCSTAGE"
///  8  uint32   version of this layout: 1
/// 12  uint32   0
/// 16  uint64   ticket
/// ```
///
/// Little-endian.
///
/// @param ticket a random number, another one for every file
public record StagingHeader(long ticket) {

    /// Bytes of the head; the client's own begin behind it.
    public static final int BYTES = Pages.BYTES;

    private static final ValueLayout.OfLong INT64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final long MAGIC = 0x4547_4154_5343_564BL; // "KVCSTAGE" in the order of bytes
    private static final long VERSION = 1;

    /// Writes it.
    ///
    /// @param page zeroed, at least 24 bytes
    public void write(MemorySegment page) {
        page.set(INT64, 0, MAGIC);
        page.set(INT64, 8, VERSION);
        page.set(INT64, 16, ticket);
    }

    /// Returns whether a file begins with this header.
    public boolean matches(MemorySegment page) {
        return page.get(INT64, 0) == MAGIC && page.get(INT64, 8) == VERSION && page.get(INT64, 16) == ticket;
    }
}
