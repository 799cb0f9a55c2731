package io.kvcache.transport.client;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/// The reply of a server to a request that was passed on to it.
///
/// **Ownership.** Its bytes are good until it is closed.
///
/// **Threads.** Any.
public final class CommandReply implements AutoCloseable {

    private final ReceiveBuffers.PooledBuffer buffer;
    private final long length;
    private final AtomicBoolean closed = new AtomicBoolean();

    CommandReply(ReceiveBuffers.PooledBuffer buffer, long length) {
        this.buffer = buffer;
        this.length = length;
    }

    /// The whole reply, in native memory.
    public MemorySegment bytes() {
        return buffer.segment(length);
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            buffer.free();
        }
    }
}
