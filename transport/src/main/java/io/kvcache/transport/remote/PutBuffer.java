package io.kvcache.transport.remote;

import java.lang.foreign.MemorySegment;

/// Where bytes lie on this side before they are put.
///
/// **Ownership.** Whoever has taken one frees it, once; nobody may touch it afterwards.
sealed interface PutBuffer permits ReceiveBuffers.PooledBuffer, StagedBuffer {

    /// The first bytes of it.
    MemorySegment segment(long bytes);

    /// Gives it back.
    void free();
}
