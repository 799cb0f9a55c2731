package io.kvcache.server;

import io.kvcache.core.DeviceSupport.EngineListener;
import io.kvcache.core.KvCache;
import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.time.Clock;
import io.kvcache.server.MaintenanceScheduler.FileReloader;
import io.kvcache.server.OperatorWarnings.ProblemDigest;
import io.kvcache.server.ProtocolFactory.HttpEndpoints;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.access.ReloadableTls;
import io.kvcache.server.cluster.ClusterEndpoint;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.cluster.ClusterPreflight;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.MemoryBudget;
import io.kvcache.server.config.RecomputeConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.SettingInForce;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TlsConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.console.ConsoleEndpoint.ConsoleParts;
import io.kvcache.server.console.ConsoleSources;
import io.kvcache.server.console.LiveFeed;
import io.kvcache.server.console.LoadHistory;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.http.HintEndpoint;
import io.kvcache.server.keyspace.SlotOwnership;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.metrics.ServerMetrics;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.miss.RemovalFollower;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.Listener;
import io.kvcache.server.net.Listener.CidrAllowList;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.server.net.SlowRequestLog;
import io.kvcache.server.quota.FairSharePool.NamespaceQuotas;
import io.kvcache.server.remote.RemoteEndpoint;
import io.kvcache.server.remote.TrustDomainStores;
import io.kvcache.server.zmq.ZmqPublisher;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.os.SystemClock;
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
    private static final long FILE_CHECK_MILLIS = 1000;

    /// Late enough that events of one moment are told together, soon enough for a router.
    private static final long EVENT_POLL_MILLIS = 20;

    private static final long PRE_DRAIN_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// How a policy that learns orders evictions while LRU finds more.
    private static final String LRU = PolicyKind.LRU.commandName();

    private static final long DRAIN_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final Clock clock;
    private final TieredKvCache cache;
    private final KeyOwnershipLoader labels;
    private final TenantKeyspaces tenantKeyspaces;
    private final PasswordAuthenticator passwordAuthenticator;
    private final ConnectionRegistry connectionRegistry;
    private final NettyTransport transport;
    private final ProtocolFactory protocolFactory;
    private final @Nullable RemoteEndpoint remote;
    private final @Nullable ClusterMember cluster;
    private final List<Listener> listeners = new ArrayList<>();
    private final Map<String, Supplier<Instant>> certificateExpiries = new ConcurrentHashMap<>();
    private final @Nullable ZmqPublisher publisher;
    private final List<EngineListener> engineListeners;
    private final RemovalFollower removals;
    private final AccessRecording uses;
    private final MaintenanceScheduler maintenanceScheduler = new MaintenanceScheduler();
    private final ProblemDigest problemDigest;

    /// Read and written by the housekeeping's thread.
    private boolean recovering = true;

    private final long startedNanos;
    private final MissLog misses;

    /// Name of the eviction policy.
    private final String policy;

    private volatile List<SettingInForce> settings = List.of();

    /// Whether values can survive a restart.
    private final boolean durable;

    private CacheServer(ServerConfig config, Clock clock, AccessRecording uses, NetworkResources networkResources)
            throws IOException {
        this.clock = clock;
        startedNanos = clock.nanos();
        durable = config.disks().isDurable();
        this.uses = uses;
        cache = uses.cache();
        transport = networkResources.transport();
        remote = networkResources.remote();
        cluster = networkResources.cluster();
        engineListeners = networkResources.engineListeners();
        labels = KeyOwnershipLoader.open(config.access().tenants());
        SlotOwnership slotOwnership = slotOwnership();
        tenantKeyspaces = TenantKeyspaces.open(cache, clock, config, labels.rules(), slotOwnership);
        RequestLatencies latencies = new RequestLatencies();
        SlowRequestLog slowRequestLog = new SlowRequestLog(config.log().slow(), clock);
        connectionRegistry = new ConnectionRegistry(
                connectionLimits(config), clock, latencies, slowRequestLog, tenantKeyspaces::throttledReads);
        passwordAuthenticator = PasswordAuthenticator.open(config.access().tenants(), clock);
        EventFeed events = new EventFeed(
                cache,
                Long.toString(InstantSource.system().millis(), Character.MAX_RADIX),
                EventFeed.subscriberSlots(
                        PlatformDependent.maxDirectMemory(),
                        config.access().tenants().size()));
        MissCauses causes = new MissCauses(System::nanoTime);
        removals = new RemovalFollower(
                cache.events().withoutObjectPuts(), events::namespace, TenantKeyspaces::isOfKeyspace, causes);
        misses = new MissLog(
                InstantSource.system(),
                causes,
                (namespace, key) -> cache.blocks(namespace).contains(key));
        cache.addChainListener(misses);
        tenantKeyspaces.recordMissesTo(misses);
        if (remote != null) {
            remote.listen(tenantKeyspaces.transportListener(causes, misses, latencies));
        }
        policy = config.memory().policy().commandName();
        ConsoleSources consoleSources = consoleSources(config, latencies, slowRequestLog);
        LoadHistory history = new LoadHistory(consoleSources);
        LiveFeed live = new LiveFeed(consoleSources);
        RemoteEndpoint front = remote;
        protocolFactory = new ProtocolFactory(
                cache,
                tenantKeyspaces,
                new ProtocolFactory.MetricSources(
                        connectionRegistry,
                        latencies,
                        passwordAuthenticator,
                        () -> front == null ? null : front.stats(),
                        uses,
                        additionalMeters(config)),
                clock,
                httpEndpoints(events, new ConsoleParts(consoleSources, history, live, () -> settings)),
                config,
                slotOwnership == null || cluster == null
                        ? null
                        : new ProtocolFactory.ClusterLinks(slotOwnership, cluster::openConnections));
        if (slotOwnership != null && cluster != null) {
            cluster.runCommandsBy(protocolFactory.commandRunner());
            cluster.openHandover(tenantKeyspaces.routers(), slotOwnership, protocolFactory.handoverForwarder());
        }
        for (ListenerConfig listen : config.access().listeners()) {
            ListenerAuth listenerAuth =
                    new ListenerAuth(listen.auth(), config.access().tenants(), passwordAuthenticator);
            listeners.add(Listener.open(
                    transport,
                    new Listener.ListenerSpec(
                            listen.socketAddress(),
                            protocolFactory.protocolsFor(listen, listenerAuth),
                            new CidrAllowList(listen.auth().cidrs()),
                            listen.auth().auth(),
                            tlsContext(listen.tls())),
                    connectionRegistry));
        }
        reloadPasswordsOnChange(config.access().tenants());
        maintenanceScheduler.scheduleRepeating(
                FILE_CHECK_MILLIS, new FileReloader("salt files", labels.files(), labels::reload));
        if (remote != null) {
            maintenanceScheduler.scheduleRepeating(
                    FILE_CHECK_MILLIS, new FileReloader("secret files", remote.files(), remote::reload));
            maintenanceScheduler.scheduleRepeating(
                    FILE_CHECK_MILLIS,
                    new FileReloader("transport.tls files", remote.certificateFiles(), remote::reloadCertificate));
        }
        if (cluster != null) {
            maintenanceScheduler.scheduleRepeating(
                    FILE_CHECK_MILLIS,
                    new FileReloader("cluster.tls files", cluster.certificateFiles(), cluster::reloadCertificate));
        }
        publisher = config.events().isEnabled()
                ? ZmqPublisher.open(config.events(), events, config.isLoopbackOnly(), InstantSource.system())
                : null;
        maintenanceScheduler.scheduleSelfPaced(TICK_MILLIS, () -> {
            events.tick(connectionRegistry.isDraining());
            return events.subscriberCount() > 0 ? EVENT_POLL_MILLIS : TICK_MILLIS;
        });
        maintenanceScheduler.scheduleRepeating(TICK_MILLIS, this::tick);
        maintenanceScheduler.scheduleRepeating(TICK_MILLIS, uses::tick);
        history.tick();
        maintenanceScheduler.scheduleRepeating(TimeUnit.SECONDS.toMillis(LoadHistory.SERVER_SECONDS), history::tick);
        maintenanceScheduler.scheduleRepeating(LiveFeed.INTERVAL_MILLIS, live::tick);
        maintenanceScheduler.scheduleRepeating(FILE_CHECK_MILLIS, connectionRegistry::tick);
        problemDigest =
                new OperatorWarnings(cache, tenantKeyspaces, connectionRegistry, passwordAuthenticator).problemDigest();
        maintenanceScheduler.scheduleRepeating(ProblemDigest.INTERVAL_MILLIS, problemDigest);
    }

    /// Takes the memory, binds, begins to serve and joins the cluster.
    ///
    /// @throws IOException when the address cannot be had
    /// @throws IllegalStateException when the memory, the transport, a GPU or a place in the cluster cannot be had
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used for a disk
    public static CacheServer start(ServerConfig config) throws IOException {
        return start(config, cluster -> ClusterMember.open(cluster)); // a method reference would load classes of it
    }

    /// @param members makes the part in the cluster that the settings name
    static CacheServer start(ServerConfig config, MemberFactory members) throws IOException {
        CacheServer server = open(config, members);
        try {
            server.joinCluster(config);
            return server;
        } catch (RuntimeException refused) {
            server.close();
            throw refused;
        }
    }

    /// Makes a server's part in its cluster.
    interface MemberFactory {
        ClusterMember open(ClusterConfig config) throws IOException;
    }

    /// The recovery of disks goes on meanwhile: a server that owns nothing until then would miss everything.
    private void joinCluster(ServerConfig config) {
        InetSocketAddress transportAddress = remoteAddress();
        if (cluster != null && transportAddress != null) {
            cluster.join(config, transportAddress.getPort(), valuePort(config), ProtocolFactory.version());
            cluster.serve();
        }
    }

    /// Returns the port of the listener for clients of Redis Cluster; 0 without one.
    private int valuePort(ServerConfig config) {
        ListenerConfig listener = config.access().redisClusterListener();
        return listener == null
                ? 0
                : addresses().get(config.access().listeners().indexOf(listener)).getPort();
    }

    private static CacheServer open(ServerConfig config, MemberFactory members) throws IOException {
        InternalLoggerFactory.setDefaultFactory(JdkLoggerFactory.INSTANCE); // where System.Logger goes too
        Clock clock = SystemClock.INSTANCE;
        GpuDevices.requireAll(config);
        TieredKvCache cache = StoreFactory.open(config, clock);
        NetworkResources networkResources = null;
        AccessRecording uses = null;
        try {
            networkResources = NetworkResources.open(config, cache, clock, members);
            uses = AccessRecording.open(cache, clock, config);
            CacheServer server = new CacheServer(config, clock, uses, networkResources);
            StoreFactory.logSharing(config, cache);
            return server;
        } catch (IOException | RuntimeException failed) {
            if (networkResources != null) {
                networkResources.close();
            }
            if (uses != null) {
                uses.close();
            }
            cache.close();
            throw failed;
        }
    }

    private @Nullable SlotOwnership slotOwnership() {
        if (cluster == null) {
            return null;
        }
        return new SlotOwnership(cluster.node(), cluster.views(), clock, InstantSource.system());
    }

    private static NetLimits connectionLimits(ServerConfig config) throws IOException {
        int transport = config.transport().isServing() ? config.transport().connections() : 0;
        int connections = FileDescriptorLimit.maxConnections(
                config.limits().connections(), transport, FileDescriptorLimit.limit());
        return config.limits().withConnections(connections);
    }

    private List<MeterBinder> additionalMeters(ServerConfig config) {
        List<MeterBinder> more = new ArrayList<>();
        more.add(registry ->
                ServerMetrics.ofCertificates(certificateExpiries).bindTo(registry)); // when all listeners are open
        ReloadableTls ofTransport = remote == null ? null : remote.reloadableTls();
        if (ofTransport != null) {
            certificateExpiries.put("transport.tls", ofTransport::expiresAt);
        }
        if (!config.disks().gpus().isEmpty()) {
            more.add(ServerMetrics.ofEngines(() -> engineListeners.stream()
                    .mapToInt(EngineListener::engineCount)
                    .sum()));
        }
        if (config.events().isEnabled()) {
            more.add(ServerMetrics.ofPublisher(this::publisher));
        }
        if (remote != null) {
            remote.domainStores().forEach((name, store) -> more.add(new KvCacheMetrics(store, "domain " + name)));
        }
        if (cluster != null) {
            more.add(ServerMetrics.ofCluster(cluster));
            if (cluster.certificateExpiry() != null) {
                certificateExpiries.put("cluster.tls", () -> Objects.requireNonNull(cluster.certificateExpiry()));
            }
        }
        return more;
    }

    private ConsoleSources consoleSources(
            ServerConfig config, RequestLatencies latencies, SlowRequestLog slowRequestLog) {
        RecomputeConfig recompute = config.disks().recompute();
        PrefillCost cost = recompute.cost();
        ClusterMember member = cluster;
        return new ConsoleSources(
                cache,
                tenantKeyspaces.keyspaces(),
                connectionRegistry,
                latencies,
                slowRequestLog,
                misses,
                () -> remote == null ? Map.of() : remote.clients(),
                uses::missRatioCurve,
                clock,
                InstantSource.system(),
                recompute.chunkTokens(),
                cost == null ? null : 1 / cost.secondsPerToken(),
                policy,
                ProtocolFactory.version(),
                member == null ? null : (groups, from) -> member.dropEverywhere(groups, from),
                config.disks().disks().stream().anyMatch(disk -> disk.bytesPerDay() > 0));
    }

    private HttpEndpoints httpEndpoints(EventFeed events, ConsoleParts console) {
        ClusterMember member = cluster;
        return new HttpEndpoints(
                List.of(new HintEndpoint(tenantKeyspaces::routerOf)),
                List.of(new DiskEndpoint(cache), new ClusterEndpoint(member)),
                events,
                console,
                () -> member == null ? "" : member.notServingReason());
    }

    /// Returns the problems of the files that these settings name: passwords, secrets, salts, certificates. Never
    /// shows their contents.
    public static List<String> findFileProblems(ServerConfig config) {
        List<TenantConfig> tenants = config.access().tenants();
        List<String> wrong = new ArrayList<>();
        collectTenantProblems(
                wrong,
                tenants,
                some -> PasswordAuthenticator.open(some, SystemClock.INSTANCE).close());
        collectTenantProblems(wrong, tenants, KeyOwnershipLoader::open);
        collectTenantProblems(wrong, tenants, some -> RemoteEndpoint.checkSecrets(config.transport(), some));
        Stream.concat(
                        Stream.of(config.transport()).map(TransportConfig::tls),
                        config.access().listeners().stream().map(ListenerConfig::tls))
                .filter(Objects::nonNull)
                .forEach(tls -> collectProblem(wrong, () -> ReloadableTls.open(tls)));
        collectProblem(wrong, () -> ClusterPreflight.checkFiles(config));
        return wrong;
    }

    /// Returns what is allowed in these settings and may not be meant: what may keep the server from
    /// meeting the others of its cluster, and pages that no client sees.
    public static List<String> findWarnings(ServerConfig config) {
        List<String> warnings = new ArrayList<>(ClusterPreflight.findWarnings(config));
        boolean administrators = config.access().tenants().stream().anyMatch(TenantConfig::admin);
        config.access().listeners().stream()
                .filter(listen -> listen.auth().auth() && listen.protocols().contains(ListenProtocol.PAGES))
                .filter(_ -> !administrators)
                .forEach(listen -> warnings.add(listen.path()
                        + ".protocols has pages and its clients authenticate, but no tenant has admin: true, so metrics"
                        + " and the other pages that tell of all tenants are refused there"));
        return warnings;
    }

    /// Returns the problems of the directories that these settings name, for disks and shared memory. Changes
    /// nothing there.
    public static List<String> findStorageProblems(ServerConfig config) {
        return StoragePreflight.findProblems(config);
    }

    /// Returns the directories that a server with these settings would make. Changes nothing there.
    public static List<String> findMissingDirectories(ServerConfig config) {
        return StoragePreflight.findMissingDirectories(config);
    }

    /// Reads the files of tenants.
    private interface TenantFiles {
        void read(List<TenantConfig> tenants) throws IOException;
    }

    /// Reads the files of each tenant, so that each mistake is named, then those of all together.
    private static void collectTenantProblems(List<String> wrong, List<TenantConfig> tenants, TenantFiles files) {
        int before = wrong.size();
        tenants.forEach(tenant -> collectProblem(wrong, () -> files.read(List.of(tenant))));
        if (wrong.size() == before) {
            collectProblem(wrong, () -> files.read(tenants));
        }
    }

    /// Returns the listener's address and the reason of the last failed TLS handshake; empty before the first.
    String lastTlsFailure() {
        return connectionRegistry.lastTlsFailure();
    }

    private static void collectProblem(List<String> wrong, FileReloader.ReloadAction reading) {
        try {
            reading.run();
        } catch (IOException unusable) {
            wrong.add(String.valueOf(unusable.getMessage()));
        }
    }

    /// Returns the memory that a server with these settings will use, inside and outside this JVM's heap.
    public static MemoryBudget memoryBudget(ServerConfig config) {
        return MemoryBudget.of(
                config.memory().hostBytes() + config.access().domainBytes(), StoreFactory.reservedBytes(config));
    }

    private void tick() {
        boolean before = recovering;
        recovering = cache.isRecovering();
        if (before && !recovering) {
            RecoverySummary.log(cache, clock.nanos() - startedNanos);
            tenantKeyspaces.onRecovered();
        }
        tenantKeyspaces.tick();
        removals.tick();
        misses.tick(cache.lruFallbackReport().followsLru() ? LRU : policy);
    }

    private @Nullable Supplier<SslContext> tlsContext(@Nullable TlsConfig config) throws IOException {
        if (config == null) {
            return null;
        }
        ReloadableTls reloadableTls = ReloadableTls.open(config);
        certificateExpiries.put(config.path(), reloadableTls::expiresAt);
        maintenanceScheduler.scheduleRepeating(
                FILE_CHECK_MILLIS,
                new FileReloader(config.path() + " files", reloadableTls.files(), reloadableTls::reload));
        return reloadableTls::context;
    }

    private void reloadPasswordsOnChange(List<TenantConfig> tenants) {
        List<Path> files = tenants.stream()
                .map(TenantConfig::passwordFile)
                .filter(Objects::nonNull)
                .map(Path::of)
                .toList();
        maintenanceScheduler.scheduleRepeating(
                FILE_CHECK_MILLIS, new FileReloader("password files", files, passwordAuthenticator::reload));
    }

    /// Has the console show the settings in force.
    public void showSettings(List<SettingInForce> inForce) {
        settings = List.copyOf(inForce);
    }

    /// Returns the address of the first listener.
    public InetSocketAddress address() {
        return addresses().getFirst();
    }

    /// Returns the addresses of all listeners, in the order of the configuration.
    public List<InetSocketAddress> addresses() {
        return listeners.stream().map(Listener::address).toList();
    }

    /// Returns the address at which other JVMs use the store over TCP, or null when they cannot.
    public @Nullable InetSocketAddress remoteAddress() {
        return remote == null ? null : remote.address();
    }

    /// Returns the address to which other JVMs connect over Aeron, or null when they cannot.
    public @Nullable String aeronAddress() {
        return remote == null ? null : remote.aeronAddress();
    }

    /// Connections that ended for a reason.
    public long closedCount(CloseReason reason) {
        return connectionRegistry.closedCount(reason);
    }

    /// Bytes that were written to clients and that the system has not taken yet.
    public long unreadBytes() {
        return connectionRegistry.openConnections().stream()
                .mapToLong(Connection::unreadBytes)
                .sum();
    }

    /// How sockets are driven.
    public TransportKind transportKind() {
        return transport.kind();
    }

    /// Returns the publisher of events over ZeroMQ, or null when events are not published.
    public @Nullable ZmqPublisher publisher() {
        return publisher;
    }

    /// The store that is served.
    public TieredKvCache cache() {
        return cache;
    }

    /// Reports not ready, and serves as before for a while: a load balancer that looks at that sends clients
    /// elsewhere before [#drain] sends them away.
    ///
    /// @param delay how long
    public void announceShutdown(Duration delay) {
        connectionRegistry.announceShutdown();
        if (cluster != null) {
            cluster.drain();
        }
        long start = clock.nanos();
        for (long left = delay.toNanos(); left > 0; left = delay.toNanos() - (clock.nanos() - start)) {
            clock.sleep(Math.min(left, PRE_DRAIN_STEP_NANOS));
        }
    }

    /// Leaves the cluster to the other servers: they own everything from now on, and are given what this one has in
    /// memory. Serves meanwhile. Does nothing in no cluster.
    ///
    /// @param limit how long the giving may take
    /// @return what came of it, for the log; empty in no cluster
    public String handOver(Duration limit) {
        ClusterMember member = cluster;
        if (member == null) {
            return "";
        }
        connectionRegistry.announceShutdown();
        member.drain();
        return member.handOver(limit);
    }

    /// Accepts no more and closes every connection as soon as its request is answered.
    ///
    /// @param timeout how long to wait for that
    /// @return whether all requests were answered; those that were not are cut off
    public boolean drain(Duration timeout) {
        if (cluster != null) {
            cluster.drain();
        }
        listeners.forEach(Listener::close);
        connectionRegistry.drain();
        if (remote != null) {
            remote.drain();
        }
        long start = clock.nanos();
        boolean answered = allRequestsCompleted();
        while (!answered && clock.nanos() - start < timeout.toNanos()) {
            clock.sleep(DRAIN_STEP_NANOS);
            answered = allRequestsCompleted();
        }
        connectionRegistry.closeAll(CloseReason.DRAIN);
        if (remote != null) {
            remote.close();
        }
        return answered;
    }

    private boolean allRequestsCompleted() {
        boolean remotes = remote == null || remote.isDrained(); // asked each time, as it tells by what it saw before
        return remotes && connectionRegistry.openCount() == 0;
    }

    /// Writes everything that is only in memory to disk, so that a restart finds it.
    ///
    /// @param timeout longest time to wait
    /// @return whether everything is on disk; true for a server without disks
    public boolean flushToDisk(Duration timeout) {
        return !durable || cache.flush(Duration.ofNanos(Math.max(0, timeout.toNanos())));
    }

    /// Goes down: as [#drain] and then [#flushToDisk], in one time for both.
    ///
    /// A client that does not go on with its request, or does not read a reply, must not cost what others have
    /// stored. So the disks begin at once, beside the requests, and have the second half of the time to themselves.
    ///
    /// @param timeout how long both may take
    public ShutdownResult stop(Duration timeout) {
        long start = clock.nanos();
        if (durable) {
            cache.flush(KvCache.NO_WAIT); // begins it, and waits for nothing
        }
        boolean answered = drain(durable ? timeout.dividedBy(2) : timeout);
        boolean saved = flushToDisk(timeout.minusNanos(clock.nanos() - start));
        return new ShutdownResult(answered, saved, saved ? 0 : cache.unsavedBytes());
    }

    /// Returns a line for each problem since the log's last summary, and counts them as told.
    public List<String> newProblems() {
        return problemDigest.newProblems();
    }

    @Override
    public void close() {
        listeners.forEach(Listener::close);
        maintenanceScheduler.close(); // before the loops and the store, which its turns use
        connectionRegistry.closeAll(CloseReason.DRAIN);
        if (remote != null) {
            remote.close();
        }
        protocolFactory.close();
        engineListeners.forEach(EngineListener::close);
        transport.eventLoops().shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        uses.close();
        passwordAuthenticator.close();
        tenantKeyspaces.releasePins();
        if (publisher != null) {
            publisher.close();
        }
        if (cluster != null) {
            cluster.close(); // the others know at once
        }
        cache.close();
    }

    /// The entry points of clients: the transport that drives the sockets of all listeners, and the endpoint for
    /// other JVMs.
    ///
    /// @param remote for other JVMs, or null
    /// @param cluster that the server joins later, or null
    /// @param engineListeners for engines on the server's GPUs
    /// @param namespaceQuotas what tenants take of the store for their namespaces
    private record NetworkResources(
            NettyTransport transport,
            @Nullable RemoteEndpoint remote,
            @Nullable ClusterMember cluster,
            List<EngineListener> engineListeners,
            NamespaceQuotas namespaceQuotas) {

        static NetworkResources open(ServerConfig config, TieredKvCache cache, Clock clock, MemberFactory members)
                throws IOException {
            NettyTransport transport = NettyTransport.open(
                    config.network().transport(), config.network().loops());
            NamespaceQuotas numbers =
                    new NamespaceQuotas(config.access().tenants().size());
            TrustDomainStores domains = null;
            ClusterMember cluster = null;
            List<EngineListener> engines = List.of();
            try {
                engines = GpuDevices.listen(config, cache);
                domains = TrustDomainStores.open(
                        config.access().domains(), each -> StoreFactory.open(config, each, clock));
                if (config.cluster() != null) {
                    cluster = members.open(config.cluster());
                }
                return new NetworkResources(
                        transport,
                        RemoteEndpoint.open(
                                config.transport(),
                                config.access().tenants(),
                                TenantKeyspaces::namespaceOf,
                                new RemoteEndpoint.ServedStores(
                                        cache,
                                        domains,
                                        numbers,
                                        cluster == null ? null : clusterStore(cluster, cache, domains, config))),
                        cluster,
                        engines,
                        numbers);
            } catch (IOException | RuntimeException failed) {
                if (domains != null) {
                    domains.close();
                }
                new NetworkResources(transport, null, cluster, engines, numbers).close();
                throw failed;
            }
        }

        private static RemoteEndpoint.ClusterStore clusterStore(
                ClusterMember cluster, TieredKvCache cache, TrustDomainStores domains, ServerConfig config) {
            return new RemoteEndpoint.ClusterStore(
                    cluster.views(),
                    cluster.openStore(cache, domains.stores().values(), config),
                    cluster.dropListener(),
                    cluster.views().ownSecret(),
                    cluster.commands());
        }

        void close() {
            if (remote != null) {
                remote.close();
            }
            if (cluster != null) {
                cluster.close();
            }
            engineListeners.forEach(EngineListener::close);
            transport.eventLoops().shutdownGracefully(0, 0, TimeUnit.SECONDS);
        }
    }

    /// The fate of a server's requests and values at shutdown.
    ///
    /// @param requestsCompleted whether all requests that had begun were answered
    /// @param valuesFlushed whether all values are on disk; true when there is no disk
    /// @param unsavedBytes of values that are not
    public record ShutdownResult(boolean requestsCompleted, boolean valuesFlushed, long unsavedBytes) {}
}
