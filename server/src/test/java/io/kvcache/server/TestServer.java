package io.kvcache.server;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.MemoryConfig;
import io.kvcache.server.config.MemoryConfig.PrefaultMode;
import io.kvcache.server.config.RequestLimits;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.ServerConfig.ExistsPinConfig;
import io.kvcache.server.config.ServerConfig.LogConfig;
import io.kvcache.server.config.ServerConfig.NetworkConfig;
import io.kvcache.server.config.ServerConfig.ShutdownConfig;
import io.kvcache.server.config.ServerConfig.TraceConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;

/// A server of 192 MiB on a port of its own.
final class TestServer implements AutoCloseable {

    private static final long HOST_BYTES = 192L << 20;

    private final CacheServer server;

    private TestServer(CacheServer server) {
        this.server = server;
    }

    /// One listener and the default tenant.
    static AccessConfig access(ListenerConfig listener) {
        return new AccessConfig(List.of(listener), List.of(TenantConfig.defaultTenant()), List.of());
    }

    /// An endpoint for other JVMs at an address, with nothing else set.
    static TransportConfig listeningOn(String listen) {
        TransportConfig usual = TransportConfig.defaults();
        return new TransportConfig(
                listen,
                null,
                false,
                usual.connections(),
                usual.lease(),
                usual.sharedMemory(),
                usual.aeron(),
                null,
                usual.ucx());
    }

    static TestServer start(TransportKind transport) {
        return start(transport, NetLimits.defaults());
    }

    static TestServer start(TransportKind transport, NetLimits limits) {
        return start(transport, limits, DiskTierConfig.defaults());
    }

    static TestServer start(TransportKind transport, NetLimits limits, DiskTierConfig disks) {
        return start(transport, limits, disks, access(ListenerConfig.onLoopback(0)));
    }

    static TestServer start(AccessConfig access) {
        return start(TransportKind.AUTO, NetLimits.defaults(), DiskTierConfig.defaults(), access);
    }

    static TestServer start(EventsConfig events) {
        return start(
                TransportKind.AUTO,
                NetLimits.defaults(),
                DiskTierConfig.defaults(),
                access(ListenerConfig.onLoopback(0)),
                events);
    }

    static TestServer start(TransportKind transport, NetLimits limits, DiskTierConfig disks, AccessConfig access) {
        return start(transport, limits, disks, access, EventsConfig.defaults());
    }

    /// With an endpoint for other JVMs.
    static TestServer start(AccessConfig access, TransportConfig transport) {
        return start(
                new NetworkConfig(TransportKind.AUTO, 2),
                NetLimits.defaults(),
                DiskTierConfig.defaults(),
                access,
                EventsConfig.defaults(),
                transport);
    }

    private static TestServer start(
            TransportKind transport, NetLimits limits, DiskTierConfig disks, AccessConfig access, EventsConfig events) {
        return start(new NetworkConfig(transport, 2), limits, disks, access, events, TransportConfig.defaults());
    }

    private static TestServer start(
            NetworkConfig network,
            NetLimits limits,
            DiskTierConfig disks,
            AccessConfig access,
            EventsConfig events,
            TransportConfig transport) {
        try {
            return new TestServer(CacheServer.start(new ServerConfig(
                    access,
                    new MemoryConfig(HOST_BYTES, PolicyKind.LRU, PrefaultMode.OFF),
                    network,
                    limits,
                    ExistsPinConfig.defaults(),
                    disks,
                    events,
                    TraceConfig.defaults(),
                    transport,
                    RequestLimits.defaults(HOST_BYTES),
                    LogConfig.defaults(),
                    new ShutdownConfig(Duration.ZERO, Duration.ofSeconds(5)),
                    null)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    CacheServer server() {
        return server;
    }

    /// The port of a listener, by its place in the configuration.
    int port(int listener) {
        return server.addresses().get(listener).getPort();
    }

    int port() {
        return server.address().getPort();
    }

    @Override
    public void close() {
        server.close();
    }
}
