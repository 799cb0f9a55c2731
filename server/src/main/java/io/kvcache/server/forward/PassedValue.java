package io.kvcache.server.forward;

import io.kvcache.server.quota.ByteBudget;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import org.jspecify.annotations.Nullable;

/// A value that a client sends and another server is to store, in native memory meanwhile.
///
/// **Ownership.** Of its buffer, until [#release].
public final class PassedValue {

    private final ByteBuf bytes;
    private final ByteBudget incoming;

    private PassedValue(ByteBuf bytes, ByteBudget incoming) {
        this.bytes = bytes;
        this.incoming = incoming;
    }

    /// Takes room for a value.
    ///
    /// @param incoming limit on values that are being received
    /// @param length of it
    /// @return null when as much is being received as may be
    public static @Nullable PassedValue begin(ByteBudget incoming, long length) {
        return incoming.tryAcquire(length)
                ? new PassedValue(PooledByteBufAllocator.DEFAULT.directBuffer((int) length, (int) length), incoming)
                : null;
    }

    /// The buffer, as large as the value.
    public ByteBuf bytes() {
        return bytes;
    }

    /// Gives the room free.
    public void release() {
        incoming.release(bytes.capacity());
        bytes.release();
    }
}
