package io.kvcache.server.config;

import io.kvcache.server.net.NettyTransport.TransportKind;

/// How sockets are driven.
///
/// @param transport epoll, io_uring or NIO
/// @param loops threads that serve connections
public record NetworkConfig(TransportKind transport, int loops) {

    static final int MAX_LOOPS = 1024;

    public NetworkConfig {
        if (loops < 1 || loops > MAX_LOOPS) {
            throw new IllegalArgumentException("network.loops is " + loops + "; it takes 1 to " + MAX_LOOPS);
        }
    }

    /// One loop a core.
    public static NetworkConfig defaults(int cores) {
        return new NetworkConfig(TransportKind.AUTO, cores);
    }
}
