package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.UncheckedBooleanSupplier;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Feeds what one connection receives to its session, and stops reading from the socket while that takes no more.
///
/// What has arrived and cannot be looked at yet waits in a backlog, which so is one read long.
///
/// **Suspension.** A session that waits for something takes no more until it has come: for an answer from elsewhere
/// ([#await]), for the other connections of its loop ([#yieldLoop]), for its client to read ([#awaitWritable]), or
/// for a reply that is written later ([#suspend]). Then [ProtocolSession#onResponded] tells it to finish its
/// request.
///
/// **Threads.** The connection's loop.
public final class SessionHandler extends ChannelInboundHandlerAdapter {

    private final Connection connection;
    private final Channel channel;
    private final ProtocolSession.Factory factory;
    private final Deque<Object> backlog = new ArrayDeque<>();
    private @Nullable ProtocolSession session;
    private @Nullable ZeroCopyRecvAllocator recvAllocator;
    private boolean pumping;
    private boolean pumpAgain;
    private boolean suspended;
    private boolean asking;
    private boolean closed;
    private boolean lingering;
    private Runnable abandonment = SessionHandler::doNothing;
    private @Nullable Runnable whenWritable;

    public SessionHandler(Connection connection, ProtocolSession.Factory factory) {
        this.connection = connection;
        this.factory = factory;
        channel = connection.channel();
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        ProtocolSession own = factory.create(context, this);
        session = own;
        if (own instanceof ProtocolSession.DirectReads reads
                && channel.config().getRecvByteBufAllocator() instanceof ZeroCopyRecvAllocator allocator) {
            recvAllocator = allocator;
            allocator.setBufferSource(() -> writableBuffer(own, reads));
        }
    }

    /// Where the next bytes are to be read to, if that matters: only when all before them are taken.
    private @Nullable ByteBuffer writableBuffer(ProtocolSession own, ProtocolSession.DirectReads reads) {
        return pumping || !backlog.isEmpty() || isPaused(own) ? null : reads.writableBuffer();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (lingering) {
            ReferenceCountUtil.release(message);
            return;
        }
        if (recvAllocator != null
                && recvAllocator.isOfferedBuffer(message)
                && session instanceof ProtocolSession.DirectReads reads) {
            ByteBuf bytes = (ByteBuf) message;
            reads.bytesWritten(bytes.readableBytes());
            bytes.release();
        } else {
            backlog.add(message);
        }
        pump(false);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        pump(true);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (channel.isWritable()) {
            pump(true);
        }
        context.fireChannelWritabilityChanged();
    }

    /// Takes from the backlog until it is empty or the session has enough. What happens within may call this
    /// again; the outer call then goes round once more.
    ///
    /// @param flush whether what was written is sent; where more is about to be read, it can wait for that
    private void pump(boolean flush) {
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
                if (flush || isPaused(current)) {
                    current.flush();
                    // The socket may have taken all that had piled up, and nothing else would go on then.
                    pumpAgain |= canContinue(current) || (!backlog.isEmpty() && !isPaused(current));
                }
            } while (pumpAgain);
        } finally {
            pumping = false;
        }
        channel.config().setAutoRead(lingering || !isPaused(current));
    }

    private void feedBacklog(ProtocolSession current) {
        continueReply(current);
        for (Object first = backlog.peek(); first != null && !isPaused(current); first = backlog.peek()) {
            if (current.onInput(first)) {
                backlog.remove();
                ReferenceCountUtil.release(first);
            }
            continueReply(current);
        }
    }

    /// Whether the session takes nothing now.
    private boolean isPaused(ProtocolSession current) {
        return isSuspended() || current.isEnded() || !channel.isWritable();
    }

    /// Whether the session waits for something.
    public boolean isSuspended() {
        return suspended || whenWritable != null;
    }

    /// Goes on with a reply that waited for the client to read.
    private void continueReply(ProtocolSession current) {
        while (canContinue(current)) {
            Runnable next = whenWritable;
            whenWritable = null;
            if (next != null) {
                next.run();
                current.onResponded();
            }
        }
    }

    private boolean canContinue(ProtocolSession current) {
        return whenWritable != null && !suspended && !current.isEnded() && channel.isWritable();
    }

    /// Goes on when the client has read some more of what was sent to it.
    public void awaitWritable(Runnable next) {
        whenWritable = next;
    }

    /// Takes no more until [#resume].
    public void suspend() {
        suspended = true;
    }

    /// Ends a suspension.
    ///
    /// @param next run first; it may suspend the session anew
    public void resume(Runnable next) {
        suspended = false;
        abandonment = SessionHandler::doNothing;
        connection.setServerWaiting(false);
        next.run();
        ProtocolSession current = session;
        if (current != null) {
            current.onResponded();
        }
        pump(true);
    }

    /// Goes on when something is found out elsewhere.
    ///
    /// @param question is told where to bring the answer: at once or later, on any thread
    /// @param next run with the answer, on the connection's loop
    /// @param unwanted takes the answer instead when the connection has ended by then
    public <T> void await(Consumer<Consumer<T>> question, Consumer<T> next, Consumer<T> unwanted) {
        await(question, next, unwanted, SessionHandler::doNothing);
    }

    /// The same for a session that holds something meanwhile.
    ///
    /// @param abandon run when the connection ends before there is an answer
    public <T> void await(Consumer<Consumer<T>> question, Consumer<T> next, Consumer<T> unwanted, Runnable abandon) {
        suspended = true;
        abandonment = abandon;
        asking = true;
        question.accept(answer -> {
            if (!channel.eventLoop().inEventLoop()) {
                try {
                    channel.eventLoop().execute(() -> onAnswer(answer, next, unwanted));
                } catch (RejectedExecutionException ended) {
                    unwanted.accept(answer);
                }
            } else if (asking) {
                suspended = false;
                next.accept(answer);
            } else {
                onAnswer(answer, next, unwanted);
            }
        });
        asking = false;
        if (suspended) {
            connection.setServerWaiting(true);
        }
    }

    private <T> void onAnswer(T answer, Consumer<T> next, Consumer<T> unwanted) {
        if (closed) {
            unwanted.accept(answer);
        } else {
            resume(() -> next.accept(answer));
        }
    }

    /// Goes on when the other connections of the loop have had their turn.
    ///
    /// A loop runs up to 64 tasks between two looks at its sockets, and a task may be one that another of them has
    /// added. It takes scheduled tasks only before the first of them, so this one comes after the next look.
    ///
    /// @param abandon run instead of `next` when the connection ends before
    public void yieldLoop(Runnable next, Runnable abandon) {
        suspended = true;
        connection.setServerWaiting(true);
        var _ = channel.eventLoop()
                .schedule(
                        () -> {
                            if (closed) {
                                abandon.run();
                            } else {
                                resume(next);
                            }
                        },
                        0,
                        TimeUnit.NANOSECONDS);
    }

    /// From now on what comes is read and thrown away: closing over unread bytes resets the connection, and the
    /// last reply would be lost.
    public void linger() {
        lingering = true;
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
        closed = true;
        backlog.forEach(ReferenceCountUtil::release);
        backlog.clear();
        Runnable abandon = abandonment;
        abandonment = SessionHandler::doNothing;
        abandon.run();
        if (session != null) {
            session.close();
        }
    }

    /// Lets a connection's bytes be read to where they are to lie, so that a value is not copied once more.
    ///
    /// When the socket has something, Netty asks for a buffer. While a value arrives, it gets the value's slot;
    /// else one of its own. The buffer is read into and handed on before anything else happens on the loop, so the
    /// slot is still the value's then. That is not so with io_uring, where the kernel writes later; there, nothing
    /// lands.
    ///
    /// **Threads.** The connection's loop.
    static final class ZeroCopyRecvAllocator implements RecvByteBufAllocator {

        /// Most that is read with no place known for it. The beginning of a value comes with its request and is
        /// copied once more, and so is all of one that is read at once: another read costs less than that, from
        /// some ten KiB on.
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

        private final class ZeroCopyHandle extends DelegatingHandle implements ExtendedHandle {

            ZeroCopyHandle(ExtendedHandle fallback) {
                super(fallback);
            }

            @Override
            public ByteBuf allocate(ByteBufAllocator allocator) {
                ByteBuf room = nextBuffer();
                if (room != null) {
                    return room;
                }
                return bufferSource == null
                        ? super.allocate(allocator)
                        : allocator.ioBuffer(Math.min(guess(), MAX_UNPLACED_BYTES));
            }

            @Override
            public boolean continueReading(UncheckedBooleanSupplier maybeMore) {
                return ((ExtendedHandle) delegate()).continueReading(maybeMore);
            }
        }
    }

    private static void doNothing() {}
}
