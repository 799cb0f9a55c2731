package io.kvcache.core;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Room for one object, in pieces: fill them in order, then [#seal()]; or [#close()] without sealing.
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

    /// The next `bytes` of the object are in their place and stay as they are: adds them to the checksum while the
    /// caches still have them. May be left out for all or for the rest; [#seal()] adds what is missing.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    /// @throws IndexOutOfBoundsException when the object has no so many bytes left
    void advance(long bytes);

    /// Completes the checksum, if one is kept, and makes the object findable in place of an older one.
    ///
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    SealOutcome seal();

    /// Makes the object findable under a checksum that the caller has computed from what lies in the room. A wrong
    /// one makes the object unreadable.
    ///
    /// @param checksum [io.kvcache.core.memory.ChunkedCrc] over the object's bytes and then those of its key
    /// @throws IllegalStateException when nothing is reserved, or after seal or close
    SealOutcome seal(int checksum);

    /// Abandons the room unless it was sealed. May be called more than once.
    @Override
    void close();
}
