package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Room for one object, in pieces: fill them in order, then [#seal()]. [#close()] without sealing abandons it.
///
/// **Ownership.** The pieces belong to the writer until seal or close, whichever is first.
///
/// **Threads.** One at a time.
public interface ObjectWriter extends AutoCloseable {

    /// [PutOutcome#RESERVED] or [PutOutcome#NO_ROOM]; several writers may fill one key at a time. [PutOutcome#BUSY]
    /// while something other than an object is being put under the key.
    PutOutcome outcome();

    /// The room, in order; together exactly the object's size.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    List<MemorySegment> segments();

    /// Fills the room from the object's start.
    ///
    /// @param source native or heap memory of exactly the object's size
    void copyFrom(MemorySegment source);

    /// Declares that the next `bytes` of the object have been written and will not change, and adds them to the
    /// checksum while the processor's caches still hold them. Optional: [#seal()] adds the rest.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    /// @throws IndexOutOfBoundsException when fewer bytes of the object are left
    void advance(long bytes);

    /// Completes the checksum, if one is kept, and makes the object findable in place of an older one.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    SealOutcome seal();

    /// Makes the object findable under a checksum that the caller computed over the written bytes. A wrong checksum
    /// makes the object unreadable.
    ///
    /// @param checksum [io.kvcache.core.memory.ChunkedCrc] over the object's bytes and then those of its key
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    SealOutcome seal(int checksum);

    /// Abandons the room unless it was sealed. May be called more than once.
    @Override
    void close();
}
