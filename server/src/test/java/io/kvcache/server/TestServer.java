package io.kvcache.server;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.config.DisksConfig;
import io.kvcache.server.config.ListenConfig;
import io.kvcache.server.config.ListenProtocol;
import io.kvcache.server.config.MemoryConfig;
import io.kvcache.server.config.NetworkConfig;
import io.kvcache.server.config.PromiseConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.TransportKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;

/// A server of 192 MiB on a port of its own.
final class TestServer implements AutoCloseable {

    private static final long HOST_BYTES = 192L << 20;

    private final CacheServer server;

    private TestServer(CacheServer server) {
        this.server = server;
    }

    static TestServer start(TransportKind transport) {
        return start(transport, NetLimits.defaults());
    }

    static TestServer start(TransportKind transport, NetLimits limits) {
        return start(transport, limits, DisksConfig.defaults());
    }

    static TestServer start(TransportKind transport, NetLimits limits, DisksConfig disks) {
        try {
            return new TestServer(CacheServer.start(new ServerConfig(
                    new ListenConfig("127.0.0.1", 0, ListenProtocol.AUTO, false),
                    new MemoryConfig(HOST_BYTES, PolicyKind.LRU, false),
                    new NetworkConfig(transport, 2),
                    limits,
                    PromiseConfig.defaults(),
                    disks,
                    Duration.ofSeconds(5))));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    CacheServer server() {
        return server;
    }

    int port() {
        return server.address().getPort();
    }

    @Override
    public void close() {
        server.close();
    }
}
