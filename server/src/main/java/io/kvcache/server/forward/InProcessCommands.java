package io.kvcache.server.forward;

import io.kvcache.server.forward.InProcessCommands.DialectServer;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.Listener.ChannelSetup;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.transport.endpoint.CommandRunner;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.local.LocalAddress;
import io.netty.channel.local.LocalChannel;
import io.netty.channel.local.LocalIoHandler;
import io.netty.channel.local.LocalServerChannel;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Runs requests of clients of other servers, as if each came over a connection of its own.
///
/// **Ownership.** Of its loops and connections, until [#close].
///
/// **Threads.** Any.
public final class InProcessCommands implements CommandRunner, AutoCloseable {

    /// In which the far ends of connections hear that these are closed.
    private static final int QUIET_MILLIS = 20;

    private static final int CLOSE_MILLIS = 1000;

    private final BiFunction<String, Dialect, @Nullable DialectServer> servers;
    private final ConnectionRegistry connections;
    private final ConnectionRegistry.ListenerSlots slots;
    private final EventLoopGroup loops;
    private final ChannelGroup channels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
    private final Map<TenantDialect, InProcessConnection.Pool> pools = new ConcurrentHashMap<>();

    /// A protocol as the clients of one tenant speak it.
    ///
    /// @param protocol that takes every client for this tenant's
    /// @param greeting sent first over a connection, with a reply; empty for none
    /// @param framer finds the ends of replies
    /// @param incoming limit on bytes of requests
    public record DialectServer(
            Protocol protocol, String greeting, Supplier<ReplyFramer> framer, ByteBudget incoming) {}

    private record TenantDialect(String tenant, Dialect dialect) {}

    /// @param servers the protocol of a tenant, or null for an unknown tenant; asked once for each
    /// @param loopCount threads that run requests
    public InProcessCommands(
            BiFunction<String, Dialect, @Nullable DialectServer> servers,
            ConnectionRegistry connections,
            int loopCount) {
        loops = new MultiThreadIoEventLoopGroup(
                loopCount, new DefaultThreadFactory("kvcache-forward", true), LocalIoHandler.newFactory());
        this.servers = servers;
        this.connections = connections;
        slots = connections.addListener(false);
    }

    @Override
    public @Nullable Command begin(String tenant, int dialect, int bytes) {
        return begin(tenant, Dialect.of(dialect), bytes);
    }

    @Nullable
    Command begin(String tenant, Dialect dialect, int bytes) {
        InProcessConnection.Pool pool = pools.computeIfAbsent(new TenantDialect(tenant, dialect), this::open);
        if (!pool.server.incoming.tryAcquire(bytes)) {
            return null;
        }
        return new RunningCommand(pool, PooledByteBufAllocator.DEFAULT.directBuffer(bytes, bytes), bytes);
    }

    private InProcessConnection.Pool open(TenantDialect of) {
        DialectServer server = servers.apply(of.tenant, of.dialect);
        if (server == null) {
            throw new IllegalArgumentException(
                    "there is no tenant " + of.tenant + "; allowed: those of the settings, at all servers alike");
        }
        Map<Protocol.ProtocolKind, Protocol> protocols = Map.of(server.protocol.kind(), server.protocol);
        List<InProcessConnection.Place> places = new ArrayList<>();
        for (EventExecutor loop : loops) {
            places.add(listen((EventLoop) loop, protocols));
        }
        return new InProcessConnection.Pool(server, places, channels);
    }

    private InProcessConnection.Place listen(EventLoop loop, Map<Protocol.ProtocolKind, Protocol> protocols) {
        Channel server = new ServerBootstrap()
                .group(loop)
                .channel(LocalServerChannel.class)
                .childOption(ChannelOption.RECVBUF_ALLOCATOR, InProcessConnection.NO_COPIES)
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        ChannelSetup.setUp(channel, protocols, connections, slots);
                    }
                })
                .bind(LocalAddress.ANY)
                .syncUninterruptibly()
                .channel();
        return new InProcessConnection.Place(loop, server.localAddress());
    }

    @Override
    public void close() {
        channels.close().awaitUninterruptibly();
        loops.shutdownGracefully(QUIET_MILLIS, CLOSE_MILLIS, TimeUnit.MILLISECONDS)
                .awaitUninterruptibly();
    }

    private static final class RunningCommand implements Command {

        private final InProcessConnection.Pool pool;
        private final ByteBuf request;
        private final int bytes;
        private @Nullable InProcessConnection connection;
        private InProcessConnection.@Nullable Reply reply;

        RunningCommand(InProcessConnection.Pool pool, ByteBuf request, int bytes) {
            this.pool = pool;
            this.request = request;
            this.bytes = bytes;
        }

        @Override
        public MemorySegment request() {
            return MemorySegment.ofBuffer(request.nioBuffer(0, bytes));
        }

        @Override
        public List<MemorySegment> run(Duration timeout) throws IOException {
            InProcessConnection own = pool.take();
            connection = own;
            request.setIndex(0, bytes);
            InProcessConnection.Reply come = own.ask(request.retainedSlice(), timeout);
            reply = come;
            return come.pieces();
        }

        @Override
        public void close() {
            InProcessConnection own = connection;
            InProcessConnection.Reply come = reply;
            if (come != null) {
                come.close();
            }
            if (own != null && come != null) {
                pool.giveBack(own);
            } else if (own != null) {
                own.close();
            }
            request.release();
            pool.server.incoming.release(bytes);
        }
    }

    /// The protocols whose requests are passed on, and their numbers in EXECUTE.
    public enum Dialect {
        /// Redis' protocol, version 2.
        RESP2(2),
        /// Redis' protocol, version 3.
        RESP3(3),
        /// Redis' protocol, version 2. The slot of a key is that of all its bytes, as for clients of Redis
        /// Cluster.
        RESP_CLUSTER(4),
        /// `lm://`.
        LM(18),
        /// HTTP/1.1, a request about an object.
        HTTP(32),
        /// The same, a HEAD: its reply says how long the body is that it has not.
        HTTP_HEAD(33);

        private final int code;

        Dialect(int code) {
            this.code = code;
        }

        int code() {
            return code;
        }

        /// @throws IllegalArgumentException for a number that no dialect has
        static Dialect of(int code) {
            for (Dialect each : values()) {
                if (each.code == code) {
                    return each;
                }
            }
            throw new IllegalArgumentException("dialect = " + code + "; allowed: 2, 3, 4, 18, 32 and 33");
        }
    }

    /// One connection within the process: a request, then its reply.
    ///
    /// **Threads.** One at a time asks; its loop receives.
    private static final class InProcessConnection extends ChannelInboundHandlerAdapter {

        /// Has each buffer arrive as it was written. Otherwise small ones are copied together and released
        /// before larger ones that were written earlier, while the pieces of a value are good until its last
        /// one is released.
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

        /// Where the server's end of a connection is. Both ends are run by one loop: another one would have to
        /// be woken for each request and each reply.
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
                for (InProcessConnection connection = idle.pollFirst();
                        connection != null;
                        connection = idle.pollFirst()) {
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
}
