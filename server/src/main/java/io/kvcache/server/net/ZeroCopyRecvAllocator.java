package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.util.UncheckedBooleanSupplier;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Lets a connection's bytes be read to where they are to lie, so that a value is not copied once more.
///
/// When the socket has something, Netty asks for a buffer. While a value arrives, it gets the value's slot; else one of
/// its own. The buffer is read into and handed on before anything else happens on the loop, so the slot is still the
/// value's then. That is not so with io_uring, where the kernel writes later; there, nothing lands.
///
/// **Threads.** The connection's loop.
final class ZeroCopyRecvAllocator implements RecvByteBufAllocator {

    /// Most that is read with no place known for it. The beginning of a value comes with its request and is copied once
    /// more, and so is all of one that is read at once: another read costs less than that, from some ten KiB on.
    private static final int MAX_UNPLACED_BYTES = 16 << 10;

    private final AdaptiveRecvByteBufAllocator fallback;
    private @Nullable Supplier<@Nullable ByteBuffer> bufferSource;
    private @Nullable ByteBuf offered;

    ZeroCopyRecvAllocator(AdaptiveRecvByteBufAllocator fallback) {
        this.fallback = fallback;
    }

    /// @param next the room for the next bytes, or null when they are not of a value
    void setBufferSource(Supplier<@Nullable ByteBuffer> next) {
        bufferSource = next;
    }

    /// Whether this is the buffer that was last given out, whose bytes lie where they are to lie.
    @SuppressWarnings("ReferenceEquality") // the very buffer, not one with equal content
    boolean isOfferedBuffer(Object message) {
        boolean mine = message == offered;
        if (mine) {
            offered = null;
        }
        return mine;
    }

    private @Nullable ByteBuf nextBuffer() {
        ByteBuffer room = bufferSource == null ? null : bufferSource.get();
        offered = room == null ? null : Unpooled.wrappedBuffer(room.slice()).clear();
        return offered;
    }

    @Override
    public ExtendedHandle newHandle() {
        return new ZeroCopyHandle((ExtendedHandle) fallback.newHandle());
    }

    private final class ZeroCopyHandle implements ExtendedHandle {

        private final ExtendedHandle fallback;

        ZeroCopyHandle(ExtendedHandle fallback) {
            this.fallback = fallback;
        }

        @Override
        public ByteBuf allocate(ByteBufAllocator allocator) {
            ByteBuf room = nextBuffer();
            if (room != null) {
                return room;
            }
            return bufferSource == null
                    ? fallback.allocate(allocator)
                    : allocator.ioBuffer(Math.min(guess(), MAX_UNPLACED_BYTES));
        }

        @Override
        public int guess() {
            return fallback.guess();
        }

        @Override
        public void reset(ChannelConfig config) {
            fallback.reset(config);
        }

        @Override
        public void incMessagesRead(int count) {
            fallback.incMessagesRead(count);
        }

        @Override
        public void lastBytesRead(int bytes) {
            fallback.lastBytesRead(bytes);
        }

        @Override
        public int lastBytesRead() {
            return fallback.lastBytesRead();
        }

        @Override
        public void attemptedBytesRead(int bytes) {
            fallback.attemptedBytesRead(bytes);
        }

        @Override
        public int attemptedBytesRead() {
            return fallback.attemptedBytesRead();
        }

        @Override
        public boolean continueReading() {
            return fallback.continueReading();
        }

        @Override
        public boolean continueReading(UncheckedBooleanSupplier maybeMore) {
            return fallback.continueReading(maybeMore);
        }

        @Override
        public void readComplete() {
            fallback.readComplete();
        }
    }
}
