package io.kvcache.core.shm;

import java.lang.foreign.MemorySegment;

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
}
