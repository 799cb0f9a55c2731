package io.kvcache.core.spi;

import java.lang.foreign.MemorySegment;

/// One contiguous span of host memory, reserved for as long as it is open.
///
/// The span is zero-filled when opened and starts at a multiple of 4,096.
///
/// **Ownership.** The caller that opens it closes it. After [#close()] every access to the segment throws; nothing is
/// unmapped while another thread is inside an access.
///
/// **Threads.** The segment may be used by any thread.
public interface HostMemory extends AutoCloseable {

    /// The whole span, bounded.
    MemorySegment segment();

    /// Waits until the first bytes of the span may be written, where the operating system still gives space.
    ///
    /// @param bytes up to all of the segment's
    /// @return whether they may; false for good when there was not enough space
    default boolean awaitSpace(long bytes) {
        return true;
    }

    /// Returns a description of the memory for a log line: `anonymous, huge pages advised`, `memfd 12`, `file
    /// /dev/shm/…`.
    String describe();

    @Override
    void close();
}
