package io.kvcache.server.forward;

import io.kvcache.server.forward.InProcessCommands.DialectServer;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.local.LocalChannel;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// One connection within the process: a request, then its reply.
///
/// **Threads.** One at a time asks; its loop receives.
final class InProcessConnection extends ChannelInboundHandlerAdapter {

    /// Has each buffer arrive as it was written. Otherwise small ones are copied together and released before larger
    /// ones that were written earlier, while the pieces of a value are good until its last one is released.
    static final RecvByteBufAllocator NO_COPIES = new FixedRecvByteBufAllocator(1);

    private static final Duration GREETING_TIMEOUT = Duration.ofSeconds(5);

    private final DialectServer server;
    private @Nullable Channel channel;
    private volatile @Nullable Question question;

    private InProcessConnection(DialectServer server) {
        this.server = server;
    }

    /// The buffers of a reply.
    ///
    /// **Ownership.** They stay until it is closed. Those of a value are its slots.
    static final class Reply implements AutoCloseable {

        private final List<ByteBuf> parts = new ArrayList<>();

        /// Their memory.
        List<MemorySegment> pieces() {
            List<MemorySegment> pieces = new ArrayList<>();
            for (ByteBuf part : parts) {
                for (ByteBuffer each : part.nioBuffers()) {
                    pieces.add(MemorySegment.ofBuffer(each));
                }
            }
            return pieces;
        }

        @Override
        public void close() {
            parts.forEach(ByteBuf::release);
            parts.clear();
        }
    }

    /// Where the server's end of a connection is. Both ends are run by one loop: another one would have to be woken
    /// for each request and each reply.
    record Place(EventLoop loop, SocketAddress address) {}

    private record Question(ReplyFramer framer, Reply reply, CompletableFuture<Reply> answer) {}

    /// Connections that are not in use, for the clients of one tenant.
    static final class Pool {

        final DialectServer server;
        private final List<Place> places;
        private final ChannelGroup channels;
        private final Deque<InProcessConnection> idle = new ConcurrentLinkedDeque<>();
        private final AtomicInteger opened = new AtomicInteger();

        /// @param places where connections are opened in turn
        /// @param channels takes each connection
        Pool(DialectServer server, List<Place> places, ChannelGroup channels) {
            this.channels = channels;
            this.server = server;
            this.places = List.copyOf(places);
        }

        /// @throws IOException when the server goes down
        InProcessConnection take() throws IOException {
            for (InProcessConnection connection = idle.pollFirst(); connection != null; connection = idle.pollFirst()) {
                if (connection.isOpen()) {
                    return connection;
                }
            }
            return open();
        }

        private InProcessConnection open() throws IOException {
            InProcessConnection connection = new InProcessConnection(server);
            Place place = places.get(Math.floorMod(opened.getAndIncrement(), places.size()));
            ChannelFuture connected = new Bootstrap()
                    .group(place.loop)
                    .channel(LocalChannel.class)
                    .option(ChannelOption.RECVBUF_ALLOCATOR, NO_COPIES)
                    .handler(connection)
                    .connect(place.address)
                    .awaitUninterruptibly();
            if (!connected.isSuccess()) {
                throw new IOException("the server takes no more requests", connected.cause());
            }
            connection.channel = connected.channel();
            channels.add(connected.channel());
            if (!server.greeting().isEmpty()) {
                connection
                        .ask(Unpooled.copiedBuffer(server.greeting(), StandardCharsets.US_ASCII), GREETING_TIMEOUT)
                        .close();
            }
            return connection;
        }

        void giveBack(InProcessConnection connection) {
            idle.addFirst(connection);
        }
    }

    private Channel requireChannel() {
        Channel own = channel;
        if (own == null) {
            throw new IllegalStateException("not connected");
        }
        return own;
    }

    boolean isOpen() {
        return requireChannel().isActive();
    }

    /// Sends a request and waits for its whole reply. When there is none the connection is closed.
    ///
    /// @param request taken over
    /// @throws IOException without a reply in time
    Reply ask(ByteBuf request, Duration timeout) throws IOException {
        Question asked = new Question(server.framer().get(), new Reply(), new CompletableFuture<>());
        question = asked;
        var _ = requireChannel().writeAndFlush(request);
        if (!isOpen()) {
            asked.answer.completeExceptionally(new IOException("the server ends its connections"));
        }
        try {
            return asked.answer.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            if (!asked.answer.completeExceptionally(late)) {
                return asked.answer.join(); // it came at the last moment
            }
            close();
            throw new IOException("no reply within " + timeout.toMillis() + " ms", late);
        } catch (ExecutionException failed) {
            close();
            Throwable cause = failed.getCause();
            throw new IOException(cause == null ? "no reply" : String.valueOf(cause.getMessage()), cause);
        } catch (InterruptedException stopped) {
            if (!asked.answer.completeExceptionally(stopped)) {
                asked.answer.join().close();
            }
            close();
            Thread.currentThread().interrupt();
            throw new IOException("the server goes down", stopped);
        }
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf part = (ByteBuf) message;
        if (!part.isReadable()) { // the end of a reply may be an empty buffer
            part.release();
            return;
        }
        Question asked = question;
        if (asked == null || asked.answer.isDone()) {
            part.release();
            context.close();
            return;
        }
        asked.reply.parts.add(part);
        try {
            if (asked.framer.isEnd(part)) {
                question = null;
                var _ = asked.answer.complete(asked.reply);
            }
        } catch (IllegalStateException wrong) {
            exceptionCaught(context, wrong);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        fail(new IOException("the server ended the connection without a reply"));
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        fail(failure);
        context.close();
    }

    private void fail(Throwable why) {
        Question asked = question;
        question = null;
        if (asked != null) {
            var _ = asked.answer.completeExceptionally(why);
            asked.reply.close();
        }
    }

    /// Ends it; what has come of a reply is thrown away by its loop.
    void close() {
        requireChannel().close();
    }
}
