package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.util.UncheckedBooleanSupplier;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Feeds one connection's bytes to its talk, and stops reading from the socket while that does not want more.
///
/// What has arrived and cannot be looked at yet waits in a backlog, which so is one read long.
public final class SessionHandler extends ChannelInboundHandlerAdapter {

    private final ProtocolSession.Factory factory;
    private final Deque<ByteBuf> backlog = new ArrayDeque<>();
    private @Nullable ProtocolSession session;
    private @Nullable ZeroCopyRecvAllocator recvAllocator;
    private boolean pumping;
    private boolean pumpAgain;

    public SessionHandler(ProtocolSession.Factory factory) {
        this.factory = factory;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        session = factory.create(context, () -> pump(context, true));
        if (context.channel().config().getRecvByteBufAllocator() instanceof ZeroCopyRecvAllocator own) {
            recvAllocator = own;
            own.setBufferSource(this::writableBuffer);
        }
    }

    /// Where the next bytes are to be read to, if that matters: only when all before them are taken.
    private @Nullable ByteBuffer writableBuffer() {
        ProtocolSession current = session;
        return current == null || pumping || !backlog.isEmpty() || current.isPaused() ? null : current.writableBuffer();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        ProtocolSession current = session;
        if (recvAllocator != null && recvAllocator.isOfferedBuffer(bytes) && current != null) {
            current.bytesWritten(bytes.readableBytes());
            bytes.release();
        } else {
            backlog.add(bytes);
        }
        pump(context, false);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        pump(context, true);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (context.channel().isWritable()) {
            pump(context, true);
        }
        context.fireChannelWritabilityChanged();
    }

    /// Takes from the backlog until it is empty or the talk has enough. What happens within may call this
    /// again; the outer call then goes round once more.
    ///
    /// @param flush whether what was written is sent; where more is about to be read, it can wait for that
    private void pump(ChannelHandlerContext context, boolean flush) {
        ProtocolSession current = session;
        if (pumping || current == null) {
            pumpAgain = true;
            return;
        }
        pumping = true;
        try {
            do {
                pumpAgain = false;
                feedBacklog(current);
                if (flush || current.isPaused()) {
                    current.flush();
                    // The socket may have taken all that had piled up, and nobody else would go on then.
                    pumpAgain |= current.canResume() || (!backlog.isEmpty() && !current.isPaused());
                }
            } while (pumpAgain);
        } finally {
            pumping = false;
        }
        context.channel().config().setAutoRead(!current.isPaused());
    }

    private void feedBacklog(ProtocolSession current) {
        current.resumeReply();
        for (ByteBuf first = backlog.peek(); first != null && !current.isPaused(); first = backlog.peek()) {
            feed(current, first);
            current.resumeReply();
        }
    }

    private void feed(ProtocolSession current, ByteBuf first) {
        current.onBytes(first);
        if (current.isEnded() || !first.isReadable()) {
            backlog.remove();
            first.release();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        end();
        context.fireChannelInactive();
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        end();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        end();
        context.fireExceptionCaught(failure);
    }

    private void end() {
        backlog.forEach(ByteBuf::release);
        backlog.clear();
        if (session != null) {
            session.close();
        }
    }

    /// Lets a connection's bytes be read to where they are to lie, so that a value is not copied once more.
    ///
    /// When the socket has something, Netty asks for a buffer. While a value arrives, it gets the value's slot; else one of
    /// its own. The buffer is read into and handed on before anything else happens on the loop, so the slot is still the
    /// value's then. That is not so with io_uring, where the kernel writes later; there, nothing lands.
    ///
    /// **Threads.** The connection's loop.
    static final class ZeroCopyRecvAllocator implements RecvByteBufAllocator {

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
}
