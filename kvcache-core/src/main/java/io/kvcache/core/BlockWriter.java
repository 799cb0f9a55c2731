package io.kvcache.core;

import java.lang.foreign.MemorySegment;

/// Room for one block: fill it, then [#seal()]. [#close()] without sealing abandons it.
///
/// No reader sees the block before it is sealed, and no writer may change it afterwards.
///
/// **Ownership.** The segment belongs to the writer until seal or close, whichever is first.
///
/// **Threads.** One at a time.
public interface BlockWriter extends AutoCloseable {

    /// Returns whether there is anything to write. Unless it is [PutOutcome#RESERVED], only [#close()] may be
    /// called.
    PutOutcome outcome();

    /// The room, of exactly the block's size. Its contents are undefined.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    MemorySegment segment();

    /// Fills the room from `source` and checksums on the way, which is cheaper than filling and then sealing.
    ///
    /// @param source native or heap memory of exactly the block's size
    /// @throws IllegalArgumentException when it has another size; nothing has changed then
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    void copyFrom(MemorySegment source);

    /// Computes the checksum, unless [#copyFrom] has, and makes the block findable.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    SealOutcome seal();

    /// Makes the block findable under a checksum that the caller computed over the written bytes, for example while
    /// receiving them. A wrong checksum makes the block unreadable.
    ///
    /// @param checksum [io.kvcache.core.memory.ChunkedCrc] over the block's bytes
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    SealOutcome seal(int checksum);

    /// Abandons the room unless it was sealed. May be called more than once.
    @Override
    void close();
}
