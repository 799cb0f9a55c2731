package io.kvcache.server.forward;

import io.kvcache.server.net.Connection;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.Listener.ChannelSetup;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.transport.endpoint.CommandRunner;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.local.LocalAddress;
import io.netty.channel.local.LocalChannel;
import io.netty.channel.local.LocalIoHandler;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
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
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Runs requests of clients of other servers, as if each came over a connection of its own.
///
/// **Ownership.** Of its loops and connections, until [#close].
///
/// **Threads.** Any.
public final class InProcessCommands implements CommandRunner, AutoCloseable {

    private static final int QUIET_MILLIS = 20;
    private static final int CLOSE_MILLIS = 1000;
    private static final Duration GREETING_TIMEOUT = Duration.ofSeconds(5);

    private final DialectServers servers;
    private final ConnectionRegistry connections;
    private final ConnectionRegistry.ListenerSlots slots;
    private final EventLoopGroup loops;
    private final ChannelGroup channels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
    private final Map<Speaker, Pool> pools = new ConcurrentHashMap<>();

    /// A protocol as the clients of one tenant speak it.
    ///
    /// @param protocol that takes every client for this tenant's
    /// @param greeting sent first over a connection, with a reply; empty for none
    /// @param incoming limit on bytes of requests
    public record DialectServer(Protocol protocol, String greeting, ByteBudget incoming) {}

    /// Makes the protocols.
    @FunctionalInterface
    public interface DialectServers {

        /// Returns the protocol as a tenant's clients speak it, or null for an unknown tenant. Asked once for
        /// each.
        ///
        /// @param anyKey whether requests about keys of other servers are run, and not refused
        @Nullable
        DialectServer open(String tenant, Dialect dialect, boolean anyKey);
    }

    private record Speaker(String tenant, Dialect dialect, boolean anyKey) {}

    /// Connections that are not in use, for the clients of one tenant.
    private record Pool(DialectServer server, Deque<InProcessConnection> idle) {}

    /// @param loopCount threads that run requests
    public InProcessCommands(DialectServers servers, ConnectionRegistry connections, int loopCount) {
        loops = new MultiThreadIoEventLoopGroup(
                loopCount, new DefaultThreadFactory("kvcache-forward", true), LocalIoHandler.newFactory());
        this.servers = servers;
        this.connections = connections;
        slots = connections.addListener(false);
    }

    @Override
    public @Nullable Command begin(String tenant, int dialect, int bytes) {
        return begin(new Speaker(tenant, Dialect.of(dialect), false), bytes);
    }

    /// As [#begin] for a request of an own client, which no other server has taken, whatever its keys.
    @Nullable
    Command beginOwn(String tenant, Dialect dialect, int bytes) {
        return begin(new Speaker(tenant, dialect, true), bytes);
    }

    private @Nullable Command begin(Speaker speaker, int bytes) {
        Pool pool = pools.computeIfAbsent(speaker, this::open);
        return pool.server.incoming.tryAcquire(bytes) ? new RunningCommand(pool, bytes) : null;
    }

    private Pool open(Speaker of) {
        DialectServer server = servers.open(of.tenant, of.dialect, of.anyKey);
        if (server == null) {
            throw new IllegalArgumentException(
                    "there is no tenant " + of.tenant + "; allowed: those of the settings, at all servers alike");
        }
        return new Pool(server, new ConcurrentLinkedDeque<>());
    }

    /// @throws IOException when the server goes down
    private InProcessConnection connect(DialectServer server) throws IOException {
        OneEndChannel channel = new OneEndChannel();
        InProcessConnection session = new InProcessConnection(channel);
        channel.pipeline().addLast(new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(session);
                session.connection = ChannelSetup.setUp(
                        channel, Map.of(server.protocol.kind(), server.protocol), connections, slots);
            }
        });
        if (!loops.register(channel).awaitUninterruptibly().isSuccess() || !channel.isActive()) {
            throw new IOException("the server takes no more requests");
        }
        channels.add(channel);
        if (!server.greeting.isEmpty()) {
            session.ask(Unpooled.copiedBuffer(server.greeting, StandardCharsets.US_ASCII), GREETING_TIMEOUT)
                    .close();
        }
        return session;
    }

    @Override
    public void close() {
        channels.close().awaitUninterruptibly();
        loops.shutdownGracefully(QUIET_MILLIS, CLOSE_MILLIS, TimeUnit.MILLISECONDS)
                .awaitUninterruptibly();
    }

    private final class RunningCommand implements Command {

        private final Pool pool;
        private final ByteBuf request;
        private final int bytes;
        private @Nullable InProcessConnection connection;
        private @Nullable Reply reply;

        RunningCommand(Pool pool, int bytes) {
            this.pool = pool;
            this.bytes = bytes;
            request = PooledByteBufAllocator.DEFAULT.directBuffer(bytes, bytes);
        }

        @Override
        public MemorySegment request() {
            return MemorySegment.ofBuffer(request.nioBuffer(0, bytes));
        }

        @Override
        public List<MemorySegment> run(Duration timeout) throws IOException {
            InProcessConnection own = pool.idle.pollFirst();
            while (own != null && !own.channel.isActive()) {
                own = pool.idle.pollFirst();
            }
            own = own == null ? connect(pool.server) : own;
            connection = own;
            request.setIndex(0, bytes);
            Reply come = own.ask(request.retainedSlice(), timeout);
            reply = come;
            return come.pieces();
        }

        @Override
        public void close() {
            if (reply != null) {
                reply.close();
            }
            if (connection != null && reply != null) {
                pool.idle.addFirst(connection);
            } else if (connection != null) {
                connection.channel.close();
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
        HTTP(32);

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
            throw new IllegalArgumentException("dialect = " + code + "; allowed: 2, 3, 4, 18 and 32");
        }
    }

    /// The buffers of a reply.
    ///
    /// **Ownership.** They stay until it is closed. Those of a value are its slots.
    private record Reply(List<ByteBuf> parts) implements AutoCloseable {

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
        }
    }

    /// A channel without another end: its requests are given to its pipeline, and [InProcessConnection] keeps what
    /// is written.
    private static final class OneEndChannel extends LocalChannel {

        private static final LocalAddress ADDRESS = new LocalAddress("forward");

        @Override
        public boolean isActive() {
            return isOpen() && isRegistered();
        }

        @Override
        protected SocketAddress localAddress0() {
            return ADDRESS;
        }

        @Override
        protected SocketAddress remoteAddress0() {
            return ADDRESS;
        }
    }

    /// One connection within the process: a request, then its reply. First in its pipeline, it keeps what is
    /// written, which is the reply once the request has ended.
    ///
    /// **Threads.** One at a time asks; its loop answers.
    private static final class InProcessConnection extends ChannelDuplexHandler {

        private final Channel channel;
        private List<ByteBuf> written = new ArrayList<>();
        private @Nullable Connection connection;

        /// What the request that the loop runs is answered by.
        private @Nullable CompletableFuture<Reply> answer;

        InProcessConnection(Channel channel) {
            this.channel = channel;
        }

        /// Runs a request and waits for its whole reply. When there is none the connection is closed.
        ///
        /// @param request taken over
        /// @throws IOException without a reply in time
        Reply ask(ByteBuf request, Duration timeout) throws IOException {
            CompletableFuture<Reply> reply = new CompletableFuture<>();
            try {
                channel.eventLoop().execute(() -> receive(request, reply));
            } catch (RejectedExecutionException ended) {
                request.release();
                throw new IOException("the server goes down", ended);
            }
            try {
                return reply.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
            } catch (TimeoutException late) {
                return comeOrFail(reply, new IOException("no reply within " + timeout.toMillis() + " ms", late));
            } catch (ExecutionException ended) {
                throw new IOException("the server ended the connection without a reply", ended);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                return comeOrFail(reply, new IOException("the server goes down", stopped));
            }
        }

        private Reply comeOrFail(CompletableFuture<Reply> reply, IOException failure) throws IOException {
            if (reply.completeExceptionally(failure)) {
                channel.close();
                throw failure;
            }
            return reply.join(); // it came at the last moment
        }

        private void receive(ByteBuf request, CompletableFuture<Reply> reply) {
            answer = reply;
            if (channel.isActive()) {
                channel.pipeline().fireChannelRead(request).fireChannelReadComplete();
            } else {
                request.release();
                fail();
            }
        }

        @Override
        public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
            ByteBuf part = (ByteBuf) message;
            if (part.isReadable()) {
                written.add(part);
            } else {
                part.release();
            }
            promise.trySuccess();
        }

        @Override
        public void flush(ChannelHandlerContext context) {
            if (connection != null && !connection.isInRequest()) {
                end(reply -> answer != null && answer.complete(reply));
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            fail();
            context.fireChannelInactive();
        }

        private void fail() {
            end(_ -> {
                if (answer != null) {
                    answer.completeExceptionally(new ClosedChannelException());
                }
                return false;
            });
        }

        /// @param take returns whether it takes the reply
        private void end(Predicate<Reply> take) {
            Reply reply = new Reply(written);
            written = new ArrayList<>();
            if (!take.test(reply)) {
                reply.close();
            }
            answer = null;
        }
    }
}
