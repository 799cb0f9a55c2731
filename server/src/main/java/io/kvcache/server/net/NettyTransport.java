package io.kvcache.server.net;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.uring.IoUring;
import io.netty.channel.uring.IoUringIoHandler;
import io.netty.channel.uring.IoUringServerSocketChannel;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// The event loops of a server, and the sockets that run on them.
///
/// **Ownership.** The caller that opened it closes [#eventLoops()].
public final class NettyTransport {

    private static final Logger LOG = System.getLogger(NettyTransport.class.getName());

    private final TransportKind kind;
    private final EventLoopGroup eventLoops;
    private final Class<? extends ServerChannel> channel;

    private NettyTransport(TransportKind kind, int loops, IoHandlerFactory io, Class<? extends ServerChannel> channel) {
        this.kind = kind;
        this.eventLoops = new MultiThreadIoEventLoopGroup(loops, new DefaultThreadFactory("kvcache-loop"), io);
        this.channel = channel;
    }

    /// Starts the loops.
    ///
    /// @param loops how many; one a core carries the most
    /// @throws IllegalStateException when the platform lacks what was asked for; the message says why
    public static NettyTransport open(TransportKind requested, int loops) {
        return switch (requested) {
            case AUTO -> Epoll.isAvailable() ? epoll(loops) : withoutEpoll(loops);
            case EPOLL -> {
                require(requested, Epoll.isAvailable(), Epoll.unavailabilityCause());
                yield epoll(loops);
            }
            case IO_URING -> {
                require(requested, IoUring.isAvailable(), IoUring.unavailabilityCause());
                yield new NettyTransport(
                        requested, loops, IoUringIoHandler.newFactory(), IoUringServerSocketChannel.class);
            }
            case NIO -> nio(loops);
        };
    }

    private static NettyTransport epoll(int loops) {
        return new NettyTransport(
                TransportKind.EPOLL, loops, EpollIoHandler.newFactory(), EpollServerSocketChannel.class);
    }

    /// Slower, and worth a word: mostly a folder for temporary files that is read-only or takes no programs.
    private static NettyTransport withoutEpoll(int loops) {
        LOG.log(
                Level.WARNING,
                "epoll is unavailable, so sockets use the slower nio: {0}; Netty unpacks its library in {1}",
                Epoll.unavailabilityCause(),
                System.getProperty("java.io.tmpdir"));
        return nio(loops);
    }

    private static NettyTransport nio(int loops) {
        return new NettyTransport(TransportKind.NIO, loops, NioIoHandler.newFactory(), NioServerSocketChannel.class);
    }

    private static void require(TransportKind requested, boolean available, Throwable cause) {
        if (!available) {
            throw new IllegalStateException(
                    "this machine has no " + requested + " for sockets: " + cause + "; network.transport takes auto",
                    cause);
        }
    }

    /// Returns the transport in use; never [TransportKind#AUTO].
    public TransportKind kind() {
        return kind;
    }

    /// Returns whether a read fills its buffer during the call, rather than some time later.
    boolean isReadinessBased() {
        return kind != TransportKind.IO_URING;
    }

    public EventLoopGroup eventLoops() {
        return eventLoops;
    }

    Class<? extends ServerChannel> serverChannel() {
        return channel;
    }

    /// How sockets are driven.
    public enum TransportKind {
        /// epoll where the platform has it, else NIO. Not io_uring: with large values it is as fast, and container
        /// profiles refuse it more often.
        AUTO,
        IO_URING,
        EPOLL,
        NIO
    }
}
