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

    private final BiFunction<String, Dialect, @Nullable Front> fronts;
    private final ConnectionRegistry connections;
    private final ConnectionRegistry.ListenerSlots slots;
    private final EventLoopGroup loops;
    private final ChannelGroup channels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
    private final Map<Spoken, Line.Pool> pools = new ConcurrentHashMap<>();

    /// A protocol as the clients of one tenant speak it.
    ///
    /// @param protocol that takes every client for this tenant's
    /// @param greeting sent first over a connection, with a reply; empty for none
    /// @param framer finds the ends of replies
    /// @param incoming limit on bytes of requests
    public record Front(Protocol protocol, String greeting, Supplier<ReplyFramer> framer, ByteBudget incoming) {}

    private record Spoken(String tenant, Dialect dialect) {}

    /// @param fronts the protocol of a tenant, or null for an unknown tenant; asked once for each
    /// @param loopCount threads that run requests
    public InProcessCommands(
            BiFunction<String, Dialect, @Nullable Front> fronts, ConnectionRegistry connections, int loopCount) {
        loops = new MultiThreadIoEventLoopGroup(
                loopCount, new DefaultThreadFactory("kvcache-forward", true), LocalIoHandler.newFactory());
        this.fronts = fronts;
        this.connections = connections;
        slots = connections.addListener(false);
    }

    @Override
    public @Nullable Command begin(String tenant, int dialect, int bytes) {
        return begin(tenant, Dialect.of(dialect), bytes);
    }

    @Nullable
    Command begin(String tenant, Dialect dialect, int bytes) {
        Line.Pool pool = pools.computeIfAbsent(new Spoken(tenant, dialect), this::open);
        if (!pool.front.incoming.tryAcquire(bytes)) {
            return null;
        }
        return new RunningCommand(pool, PooledByteBufAllocator.DEFAULT.directBuffer(bytes, bytes), bytes);
    }

    private Line.Pool open(Spoken spoken) {
        Front front = fronts.apply(spoken.tenant, spoken.dialect);
        if (front == null) {
            throw new IllegalArgumentException(
                    "there is no tenant " + spoken.tenant + "; allowed: those of the settings, at all servers alike");
        }
        Map<Protocol.ProtocolKind, Protocol> protocols = Map.of(front.protocol.kind(), front.protocol);
        List<Line.Place> places = new ArrayList<>();
        for (EventExecutor loop : loops) {
            places.add(listen((EventLoop) loop, protocols));
        }
        return new Line.Pool(front, places, channels);
    }

    private Line.Place listen(EventLoop loop, Map<Protocol.ProtocolKind, Protocol> protocols) {
        Channel server = new ServerBootstrap()
                .group(loop)
                .channel(LocalServerChannel.class)
                .childOption(ChannelOption.RECVBUF_ALLOCATOR, Line.NO_COPIES)
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        ChannelSetup.setUp(channel, protocols, connections, slots);
                    }
                })
                .bind(LocalAddress.ANY)
                .syncUninterruptibly()
                .channel();
        return new Line.Place(loop, server.localAddress());
    }

    @Override
    public void close() {
        channels.close().awaitUninterruptibly();
        loops.shutdownGracefully(QUIET_MILLIS, CLOSE_MILLIS, TimeUnit.MILLISECONDS)
                .awaitUninterruptibly();
    }

    private static final class RunningCommand implements Command {

        private final Line.Pool pool;
        private final ByteBuf request;
        private final int bytes;
        private @Nullable Line line;
        private Line.@Nullable Reply reply;

        RunningCommand(Line.Pool pool, ByteBuf request, int bytes) {
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
            Line own = pool.take();
            line = own;
            request.setIndex(0, bytes);
            Line.Reply come = own.ask(request.retainedSlice(), timeout);
            reply = come;
            return come.pieces();
        }

        @Override
        public void close() {
            Line own = line;
            Line.Reply come = reply;
            if (come != null) {
                come.close();
            }
            if (own != null && come != null) {
                pool.giveBack(own);
            } else if (own != null) {
                own.close();
            }
            request.release();
            pool.front.incoming.release(bytes);
        }
    }
}
