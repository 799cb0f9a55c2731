package io.kvcache.core.shm;

import io.kvcache.core.memory.Pages;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/// Memory that one client of a shared store writes what it puts into, and that the store reads.
///
/// It is a file beside those of the store: a [StagingHeader] that tells it from any other, and then the bytes
/// that the client has for itself. The client may change them, or cut the file short, at any moment; so
/// nothing here is ever mapped by the store, and only what [#read] has copied is looked at.
///
/// **Ownership.** The caller that asked for it closes it; the store closes what is left when it closes.
///
/// **Threads.** Any.
public interface StagingArea extends AutoCloseable {

    /// The name of the file in the store's folder.
    String file();

    /// Returns the header at the start of the file.
    StagingHeader header();

    /// How much the client has.
    long bytes();

    /// Copies what is there at this moment.
    ///
    /// @param offset in bytes behind the head
    /// @param into native memory, which is filled
    /// @return false when it is not there: the file was cut short, or is closed
    /// @throws IndexOutOfBoundsException when it is not within [#bytes]
    boolean read(long offset, MemorySegment into);

    /// Removes the file; a client that has it mapped keeps what it has. Does nothing a second time.
    @Override
    void close();

    /// The first page of a file that a client writes into. It names the client that the server made the file
    /// for, so that a client with the path of another client's file does not write there.
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

        private static final ValueLayout.OfLong INT64 =
                ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

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
}
