package io.kvcache.server.forward;

import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.Listener.ChannelSetup;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.transport.endpoint.CommandRunner;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.local.LocalAddress;
import io.netty.channel.local.LocalIoHandler;
import io.netty.channel.local.LocalServerChannel;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
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
        /// Redis' protocol, version 2. The slot of a key is that of all its bytes, as for clients of Redis Cluster.
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
}
