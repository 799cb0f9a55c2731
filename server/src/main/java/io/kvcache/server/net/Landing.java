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
final class Landing implements RecvByteBufAllocator {

    /// Most that is read with no place known for it. The beginning of a value comes with its request and is copied once
    /// more, and so is all of one that is read at once: another read costs less than that, from some ten KiB on.
    private static final int MOST_BESIDE = 16 << 10;

    private final AdaptiveRecvByteBufAllocator usual;
    private @Nullable Supplier<@Nullable ByteBuffer> place;
    private @Nullable ByteBuf offered;

    Landing(AdaptiveRecvByteBufAllocator usual) {
        this.usual = usual;
    }

    /// @param next the room for the next bytes, or null when they are not of a value
    void at(Supplier<@Nullable ByteBuffer> next) {
        place = next;
    }

    /// Whether this is the buffer that was last given out, whose bytes lie where they are to lie.
    @SuppressWarnings("ReferenceEquality") // the very buffer, not one with equal content
    boolean took(Object message) {
        boolean mine = message == offered;
        if (mine) {
            offered = null;
        }
        return mine;
    }

    private @Nullable ByteBuf offer() {
        ByteBuffer room = place == null ? null : place.get();
        offered = room == null ? null : Unpooled.wrappedBuffer(room.slice()).clear();
        return offered;
    }

    @Override
    public ExtendedHandle newHandle() {
        return new Chooser((ExtendedHandle) usual.newHandle());
    }

    private final class Chooser implements ExtendedHandle {

        private final ExtendedHandle usual;

        Chooser(ExtendedHandle usual) {
            this.usual = usual;
        }

        @Override
        public ByteBuf allocate(ByteBufAllocator allocator) {
            ByteBuf room = offer();
            if (room != null) {
                return room;
            }
            return place == null ? usual.allocate(allocator) : allocator.ioBuffer(Math.min(guess(), MOST_BESIDE));
        }

        @Override
        public int guess() {
            return usual.guess();
        }

        @Override
        public void reset(ChannelConfig config) {
            usual.reset(config);
        }

        @Override
        public void incMessagesRead(int count) {
            usual.incMessagesRead(count);
        }

        @Override
        public void lastBytesRead(int bytes) {
            usual.lastBytesRead(bytes);
        }

        @Override
        public int lastBytesRead() {
            return usual.lastBytesRead();
        }

        @Override
        public void attemptedBytesRead(int bytes) {
            usual.attemptedBytesRead(bytes);
        }

        @Override
        public int attemptedBytesRead() {
            return usual.attemptedBytesRead();
        }

        @Override
        public boolean continueReading() {
            return usual.continueReading();
        }

        @Override
        public boolean continueReading(UncheckedBooleanSupplier maybeMore) {
            return usual.continueReading(maybeMore);
        }

        @Override
        public void readComplete() {
            usual.readComplete();
        }
    }
}
