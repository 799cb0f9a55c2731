package io.kvcache.server;

import io.kvcache.core.Clock;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.DisksConfig;
import io.kvcache.server.config.PromiseConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceOptions;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.Listener;
import io.kvcache.server.net.Transport;
import io.kvcache.server.net.TransportKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.netty.util.internal.logging.InternalLoggerFactory;
import io.netty.util.internal.logging.JdkLoggerFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.TimeUnit;

/// A running server: a store, a keyspace over it, and the front ends at one port.
///
/// **Ownership.** [#close] takes everything down; [#drain] before it lets requests that have begun end well.
///
/// **Threads.** Any.
public final class CacheServer implements AutoCloseable {

    private static final long TICK_MILLIS = 100;
    private static final long WATCH_MILLIS = 1000;
    private static final long DRAIN_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /// Views that the network still holds when its loops have ended belong to a bug; they are not waited for long.
    private static final Duration CLOSE_WAIT = Duration.ofSeconds(1);

    private final Clock clock;
    private final TieredKvCache cache;
    private final Keyspace keyspace;
    private final Connections connections;
    private final Transport transport;
    private final Listener listener;
    private final Housekeeping housekeeping = new Housekeeping();

    private CacheServer(ServerConfig config, Clock clock, TieredKvCache cache, Transport transport) throws IOException {
        this.clock = clock;
        this.cache = cache;
        this.transport = transport;
        keyspace = new Keyspace(
                cache, Namespace.objects("objects", "default"), clock, InstantSource.system(), options(config));
        connections = new Connections(config.limits(), clock);
        listener = Listener.open(
                transport,
                config.listen().socketAddress(),
                new FrontEnds(cache, keyspace, connections, clock).at(config.listen()),
                connections);
        housekeeping.every(TICK_MILLIS, keyspace::tick);
        housekeeping.every(WATCH_MILLIS, connections::tick);
    }

    /// Takes the memory, binds and begins to serve.
    ///
    /// @throws IOException when the address cannot be had
    /// @throws IllegalStateException when the memory or the transport cannot be had
    /// @throws io.kvcache.tiers.directory.DiskRefusedException when a directory cannot be used for a disk
    public static CacheServer start(ServerConfig config) throws IOException {
        InternalLoggerFactory.setDefaultFactory(JdkLoggerFactory.INSTANCE); // where System.Logger goes too
        Clock clock = new SystemTime();
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(config.memory().hostBytes())
                .policy(config.memory().policy())
                .touched(config.memory().prefault())
                .closeWait(CLOSE_WAIT)
                .admission(config.disks().admission())
                .clock(clock);
        config.disks().disks().forEach(disk -> builder.disk(disk.options()));
        TieredKvCache cache = builder.build();
        Transport transport = null;
        try {
            transport = Transport.open(
                    config.network().transport(), config.network().loops());
            return new CacheServer(config, clock, cache, transport);
        } catch (IOException | RuntimeException failed) {
            if (transport != null) {
                transport.loops().shutdownGracefully(0, 0, TimeUnit.SECONDS);
            }
            cache.close();
            throw failed;
        }
    }

    private static KeyspaceOptions options(ServerConfig config) {
        PromiseConfig promise = config.promise();
        DisksConfig disks = config.disks();
        return new KeyspaceOptions(
                promise.time(),
                config.memory().hostBytes() / 100 * promise.percent(),
                disks.disks().isEmpty() ? Duration.ZERO : disks.readTimeout());
    }

    /// Where it listens.
    public InetSocketAddress address() {
        return listener.address();
    }

    /// How sockets are driven.
    public TransportKind transport() {
        return transport.kind();
    }

    /// The store that is served.
    public TieredKvCache cache() {
        return cache;
    }

    /// Accepts no more and closes every connection as soon as its request is answered.
    ///
    /// @param longest how long to wait for that
    /// @return whether all requests were answered; those that were not are cut off
    public boolean drain(Duration longest) {
        listener.close();
        connections.drain();
        long start = clock.nanos();
        while (connections.openCount() > 0 && clock.nanos() - start < longest.toNanos()) {
            clock.pause(DRAIN_STEP_NANOS);
        }
        boolean answered = connections.openCount() == 0;
        connections.closeAll(CloseReason.DRAIN);
        return answered;
    }

    /// Brings to disk what is in memory alone, so that a restart finds it.
    ///
    /// @param longest how long that may take
    /// @return whether all of it is there; true when there is no disk
    public boolean save(Duration longest) {
        return cache.diskStats().isEmpty() || cache.flush(Math.max(0, longest.toNanos()));
    }

    @Override
    public void close() {
        listener.close();
        connections.closeAll(CloseReason.DRAIN);
        transport.loops().shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        housekeeping.close();
        keyspace.release();
        cache.close();
    }
}
