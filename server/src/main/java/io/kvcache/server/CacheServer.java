package io.kvcache.server;

import io.kvcache.core.Clock;
import io.kvcache.server.access.Door;
import io.kvcache.server.access.Logins;
import io.kvcache.server.block.BlockArea;
import io.kvcache.server.block.BlockNamespaces;
import io.kvcache.server.block.BlockStocks;
import io.kvcache.server.block.NamespaceArea;
import io.kvcache.server.config.DisksConfig;
import io.kvcache.server.config.LeaseConfig;
import io.kvcache.server.config.ListenConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TlsConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.event.EventArea;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.event.EventNames;
import io.kvcache.server.event.Snapshots;
import io.kvcache.server.http.Area;
import io.kvcache.server.http.HintArea;
import io.kvcache.server.lease.LeaseArea;
import io.kvcache.server.lease.Leases;
import io.kvcache.server.memory.MemoryBudget;
import io.kvcache.server.metrics.CertificateMetrics;
import io.kvcache.server.metrics.Latencies;
import io.kvcache.server.metrics.LeaseMetrics;
import io.kvcache.server.metrics.PublisherMetrics;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.Listener;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.Networks;
import io.kvcache.server.net.SlowRequests;
import io.kvcache.server.net.Transport;
import io.kvcache.server.net.TransportKind;
import io.kvcache.server.quota.NamespaceShares;
import io.kvcache.server.remote.RemoteFront;
import io.kvcache.server.tls.Certificate;
import io.kvcache.server.zmq.ZmqPublisher;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.netty.handler.ssl.SslContext;
import io.netty.util.internal.PlatformDependent;
import io.netty.util.internal.logging.InternalLoggerFactory;
import io.netty.util.internal.logging.JdkLoggerFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A running server: a store, a keyspace over it, and the front ends at one port.
///
/// **Ownership.** [#close] takes everything down; [#drain] before it lets requests that have begun end well.
///
/// **Threads.** Any.
public final class CacheServer implements AutoCloseable {

    private static final long TICK_MILLIS = 100;
    private static final long WATCH_MILLIS = 1000;

    /// Late enough that events of one moment are told together, soon enough for a router.
    private static final long EVENT_MILLIS = 20;

    private static final long LEAVE_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final long DRAIN_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final Clock clock;
    private final TieredKvCache cache;
    private final TenantLabels labels;
    private final Tenants tenants;
    private final Logins logins;
    private final Connections connections;
    private final Leases leases;
    private final Transport transport;
    private final @Nullable RemoteFront remote;
    private final List<Listener> listeners = new ArrayList<>();
    private final Map<String, Supplier<Instant>> certificateEnds = new ConcurrentHashMap<>();
    private final @Nullable ZmqPublisher publisher;
    private final BlockStocks blocks;
    private final UseWatch uses;
    private final Housekeeping housekeeping = new Housekeeping();

    /// Read and written by the housekeeping's thread.
    private boolean recovering = true;

    private final long startedNanos;

    private CacheServer(ServerConfig config, Clock clock, UseWatch uses, Sockets sockets) throws IOException {
        this.clock = clock;
        startedNanos = clock.nanos();
        this.uses = uses;
        cache = uses.cache();
        transport = sockets.transport();
        remote = sockets.remote();
        labels = TenantLabels.open(config.access().tenants());
        tenants = Tenants.open(cache, clock, config, labels::now);
        LeaseConfig lease = config.lease();
        leases = new Leases(clock, config.memory().hostBytes() / 100 * lease.percent());
        Latencies latencies = new Latencies();
        connections = new Connections(
                limits(config), clock, latencies, new SlowRequests(config.log().slow(), clock), tenants::refusedReads);
        logins = Logins.open(config.access().tenants(), clock);
        EventNames names = new EventNames(cache);
        blocks = new BlockStocks(cache, tenants.quotas(), names::of);
        Snapshots snapshots =
                new Snapshots(cache.events(), () -> cache.stats().records().live());
        EventFeed events = new EventFeed(
                cache.events(),
                names,
                snapshots,
                connections::draining,
                Long.toString(InstantSource.system().millis(), Character.MAX_RADIX),
                EventFeed.places(
                        PlatformDependent.maxDirectMemory(),
                        config.access().tenants().size()));
        RemoteFront front = remote;
        FrontEnds frontEnds = new FrontEnds(
                cache,
                tenants,
                new FrontEnds.Counted(
                        connections,
                        latencies,
                        logins,
                        blocks,
                        () -> front == null ? null : front.stats(),
                        uses,
                        moreMeters(config)),
                clock,
                areas(config, events, sockets.numbers()),
                config.memory().policy());
        for (ListenConfig listen : config.access().listeners()) {
            Door door = new Door(listen.entry(), config.access().tenants(), logins);
            listeners.add(Listener.open(
                    transport,
                    new Listener.Place(
                            listen.socketAddress(),
                            frontEnds.at(listen, door),
                            new Networks(listen.entry().cidrs()),
                            listen.entry().auth(),
                            tls(listen.tls())),
                    connections));
        }
        watchPasswords(config.access().tenants());
        housekeeping.every(WATCH_MILLIS, new WatchedFiles("salt files", labels.files(), labels::reload));
        if (remote != null) {
            housekeeping.every(WATCH_MILLIS, new WatchedFiles("secret files", remote.files(), remote::reload));
            housekeeping.every(
                    WATCH_MILLIS,
                    new WatchedFiles("transport.tls files", remote.certificateFiles(), remote::reloadCertificate));
        }
        publisher = config.events().on()
                ? ZmqPublisher.open(
                        config.events(),
                        new ZmqPublisher.Followed(cache.events(), names, snapshots),
                        InstantSource.system())
                : null;
        housekeeping.paced(TICK_MILLIS, () -> {
            events.tick();
            return events.followerCount() > 0 ? EVENT_MILLIS : TICK_MILLIS;
        });
        housekeeping.every(TICK_MILLIS, this::tick);
        housekeeping.every(TICK_MILLIS, leases::tick);
        housekeeping.every(TICK_MILLIS, uses::tick);
        housekeeping.every(WATCH_MILLIS, connections::tick);
        housekeeping.every(MinuteReport.MILLIS, new Worries(cache, tenants, connections, logins, blocks).report());
    }

    /// Takes the memory, binds and begins to serve.
    ///
    /// @throws IOException when the address cannot be had
    /// @throws IllegalStateException when the memory or the transport cannot be had
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used for a disk
    public static CacheServer start(ServerConfig config) throws IOException {
        InternalLoggerFactory.setDefaultFactory(JdkLoggerFactory.INSTANCE); // where System.Logger goes too
        Clock clock = new SystemTime();
        TieredKvCache cache = ServedStore.open(config, clock);
        Sockets sockets = null;
        UseWatch uses = null;
        try {
            sockets = Sockets.open(config, cache, clock);
            uses = UseWatch.open(cache, clock, config);
            return new CacheServer(config, clock, uses, sockets);
        } catch (IOException | RuntimeException failed) {
            if (sockets != null) {
                sockets.close();
            }
            if (uses != null) {
                uses.close();
            }
            cache.close();
            throw failed;
        }
    }

    private static NetLimits limits(ServerConfig config) throws IOException {
        int transport = config.transport().serves() ? config.transport().connections() : 0;
        int connections = OpenFiles.connections(config.limits().connections(), transport, OpenFiles.limit());
        return config.limits().withConnections(connections);
    }

    private List<MeterBinder> moreMeters(ServerConfig config) {
        List<MeterBinder> more = new ArrayList<>();
        more.add(new LeaseMetrics(leases));
        more.add(registry -> new CertificateMetrics(certificateEnds).bindTo(registry)); // when all listeners are open
        Certificate ofTransport = remote == null ? null : remote.certificate();
        if (ofTransport != null) {
            certificateEnds.put("transport.tls", ofTransport::end);
        }
        if (config.events().on()) {
            more.add(new PublisherMetrics(this::publisher));
        }
        if (remote != null) {
            remote.domains().forEach((name, store) -> more.add(new KvCacheMetrics(store, "domain " + name)));
        }
        return more;
    }

    private Areas areas(ServerConfig config, EventFeed events, NamespaceShares numbers) {
        TenantShares shares = new TenantShares(cache, config);
        BlockNamespaces namespaces = new BlockNamespaces(
                cache,
                labels::ownerOf,
                blocks,
                shares::join,
                new BlockNamespaces.Room(config.access().tenants().size(), numbers));
        DisksConfig disks = config.disks();
        Duration arrival = disks.disks().isEmpty() ? Duration.ZERO : disks.readTimeout();
        List<Area> everybodys = new ArrayList<>();
        everybodys.add(new NamespaceArea(namespaces));
        everybodys.add(new HintArea(tenants::reach));
        BlockArea.OnTheWay onTheWay = new BlockArea.OnTheWay(tenants::arriving, tenants::leaving);
        everybodys.add(new BlockArea(cache, namespaces, arrival, blocks, onTheWay));
        if (config.lease().on()) {
            everybodys.add(new LeaseArea(
                    cache, tenants.keyspaces(), leases, config.lease().longest()));
        }
        return new Areas(everybodys, List.of(new EventArea(events), new DiskArea(cache)));
    }

    /// What is wrong with the files that these settings name: passwords, secrets, salts, certificates. Never shows what
    /// is in them.
    public static List<String> unusableFiles(ServerConfig config) {
        List<TenantConfig> tenants = config.access().tenants();
        List<String> wrong = new ArrayList<>();
        tryOut(wrong, () -> Logins.open(tenants, new SystemTime()).close());
        tryOut(wrong, () -> TenantLabels.open(tenants));
        tryOut(wrong, () -> RemoteFront.checkSecrets(config.transport(), tenants));
        Stream.concat(
                        Stream.of(config.transport()).map(TransportConfig::tls),
                        config.access().listeners().stream().map(ListenConfig::tls))
                .filter(Objects::nonNull)
                .forEach(tls -> tryOut(wrong, () -> Certificate.open(tls)));
        return wrong;
    }

    /// What is wrong with the folders that these settings name, of disks and of shared memory. Changes nothing there.
    public static List<String> unusablePlaces(ServerConfig config) {
        return Places.refused(config);
    }

    private static void tryOut(List<String> wrong, WatchedFiles.Reload reading) {
        try {
            reading.run();
        } catch (IOException unusable) {
            wrong.add(String.valueOf(unusable.getMessage()));
        }
    }

    /// What a server with these settings will take of this JVM's memory and beside it.
    public static MemoryBudget budget(ServerConfig config) {
        return MemoryBudget.of(
                config.memory().hostBytes() + config.access().domainBytes(), ServedStore.reservedBytes(config));
    }

    private void tick() {
        boolean before = recovering;
        recovering = cache.isRecovering();
        if (before && !recovering) {
            FoundOnDisk.log(cache, clock.nanos() - startedNanos);
            tenants.recovered();
            blocks.recovered();
        }
        tenants.tick();
        blocks.tick();
    }

    private @Nullable Supplier<SslContext> tls(@Nullable TlsConfig config) throws IOException {
        if (config == null) {
            return null;
        }
        Certificate certificate = Certificate.open(config);
        certificateEnds.put(config.path(), certificate::end);
        housekeeping.every(
                WATCH_MILLIS, new WatchedFiles(config.path() + " files", certificate.files(), certificate::reload));
        return certificate::context;
    }

    private void watchPasswords(List<TenantConfig> tenants) {
        List<Path> files = tenants.stream()
                .map(TenantConfig::passwordFile)
                .filter(Objects::nonNull)
                .map(Path::of)
                .toList();
        housekeeping.every(WATCH_MILLIS, new WatchedFiles("password files", files, logins::reload));
    }

    /// Where it listens first.
    public InetSocketAddress address() {
        return addresses().getFirst();
    }

    /// Where it listens, in the order of the configuration.
    public List<InetSocketAddress> addresses() {
        return listeners.stream().map(Listener::address).toList();
    }

    /// Where other JVMs use the store over TCP, or null when they cannot.
    public @Nullable InetSocketAddress remoteAddress() {
        return remote == null ? null : remote.address();
    }

    /// What other JVMs connect to over Aeron, or null when they cannot.
    public @Nullable String aeronAddress() {
        return remote == null ? null : remote.aeronAddress();
    }

    /// Connections that ended for a reason.
    public long closedCount(CloseReason reason) {
        return connections.closedCount(reason);
    }

    /// Bytes that were written to clients and that the system has not taken yet.
    public long unreadBytes() {
        return connections.all().stream().mapToLong(Connection::unreadBytes).sum();
    }

    /// How sockets are driven.
    public TransportKind transport() {
        return transport.kind();
    }

    /// What publishes events over ZeroMQ, or null when nothing does.
    public @Nullable ZmqPublisher publisher() {
        return publisher;
    }

    /// The store that is served.
    public TieredKvCache cache() {
        return cache;
    }

    /// Reports not ready, and serves as before for a while: a load balancer that looks at that sends clients elsewhere
    /// before [#drain] sends them away.
    ///
    /// @param delay how long
    public void leave(Duration delay) {
        connections.leave();
        long start = clock.nanos();
        for (long left = delay.toNanos(); left > 0; left = delay.toNanos() - (clock.nanos() - start)) {
            clock.sleep(Math.min(left, LEAVE_STEP_NANOS));
        }
    }

    /// Accepts no more and closes every connection as soon as its request is answered.
    ///
    /// @param longest how long to wait for that
    /// @return whether all requests were answered; those that were not are cut off
    public boolean drain(Duration longest) {
        listeners.forEach(Listener::close);
        connections.drain();
        if (remote != null) {
            remote.drain();
        }
        long start = clock.nanos();
        boolean answered = answered();
        while (!answered && clock.nanos() - start < longest.toNanos()) {
            clock.sleep(DRAIN_STEP_NANOS);
            answered = answered();
        }
        connections.closeAll(CloseReason.DRAIN);
        if (remote != null) {
            remote.close();
        }
        return answered;
    }

    private boolean answered() {
        boolean remotes = remote == null || remote.drained(); // asked each time, as it tells by what it saw before
        return remotes && connections.openCount() == 0;
    }

    /// Brings to disk what is in memory alone, so that a restart finds it.
    ///
    /// @param longest how long that may take
    /// @return whether all of it is there; true when there is no disk
    public boolean save(Duration longest) {
        return cache.diskStats().isEmpty() || cache.flush(Math.max(0, longest.toNanos()));
    }

    /// Goes down: as [#drain] and then [#save], in one time for both.
    ///
    /// A client that does not go on with its request, or does not read a reply, must not cost what others have
    /// stored. So the disks begin at once, beside the requests, and have the second half of the time to themselves.
    ///
    /// @param longest how long both may take
    public Stopped stop(Duration longest) {
        long start = clock.nanos();
        boolean disks = !cache.diskStats().isEmpty();
        if (disks) {
            cache.flush(0); // begins it, and waits for nothing
        }
        boolean answered = drain(disks ? longest.dividedBy(2) : longest);
        boolean saved = save(longest.minusNanos(clock.nanos() - start));
        return new Stopped(answered, saved, saved ? 0 : cache.unsavedBytes());
    }

    @Override
    public void close() {
        listeners.forEach(Listener::close);
        housekeeping.close(); // before the loops and the store, which its turns use
        connections.closeAll(CloseReason.DRAIN);
        if (remote != null) {
            remote.close();
        }
        transport.loops().shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        uses.close();
        logins.close();
        tenants.release();
        leases.close();
        if (publisher != null) {
            publisher.close();
        }
        cache.close();
    }
}
