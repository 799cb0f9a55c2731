package io.kvcache.server;

import com.sun.management.UnixOperatingSystemMXBean;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.access.ReloadableTls;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TlsConfig;
import io.kvcache.server.forward.InProcessCommands;
import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.forward.InProcessCommands.DialectServer;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.http.HintEndpoint;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.metrics.ServerMetrics.RequestCounters;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.Listener;
import io.kvcache.server.net.Listener.CidrAllowList;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.net.SlowRequestLog;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.quota.FairSharePool.NamespaceQuotas;
import io.kvcache.server.remote.RemoteEndpoint;
import io.kvcache.server.resp.RespContext;
import io.kvcache.server.resp.RespContext.ServerInfo;
import io.kvcache.server.resp.RespProtocol;
import io.kvcache.server.zmq.ZmqPublisher;
import io.netty.handler.ssl.SslContext;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// The ways into a server: listeners with their protocols, the endpoint for other JVMs, and the publisher of
/// events.
///
/// **Ownership.** Of all these, until [#close]. The store and the cluster are closed after it.
///
/// **Threads.** Any; [#listen] once, before anything else.
final class FrontEnds implements AutoCloseable {

    private static final long CONNECTIONS_TICK_MILLIS = 1000;
    private static final long EVENTS_TICK_MILLIS = 100;

    /// Late enough that events of one moment are told together, soon enough for a router.
    private static final long EVENT_POLL_MILLIS = 20;

    private static final long DRAIN_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final int MAX_FORWARD_LOOPS = 4;

    private final ServerConfig config;
    private final ServedStore store;
    private final NettyTransport transport;
    private final PasswordAuthenticator passwords;
    private final @Nullable RemoteEndpoint remote;
    private final RequestLatencies latencies;
    private final SlowRequestLog slowRequests;
    private final ConnectionRegistry connections;
    private final ServerInfo serverInfo;
    private final ByteBudget arguments = RespProtocol.argumentsOfHeap();
    private final @Nullable Forwarding forwarding;
    private final List<RespProtocol> respProtocols = new CopyOnWriteArrayList<>();
    private final List<LmProtocol> lmProtocols = new CopyOnWriteArrayList<>();
    private final List<HttpProtocol> httpProtocols = new CopyOnWriteArrayList<>();
    private final Map<String, ReloadableTls> listenerTls = new HashMap<>();
    private final Map<String, Supplier<Instant>> certificateExpiries = new ConcurrentHashMap<>();
    private final List<Listener> listeners = new ArrayList<>();
    private volatile @Nullable ZmqPublisher publisher;

    /// Both sides of requests that are passed on.
    ///
    /// @param handover passes values on, so that clients do not wait for them
    /// @param commands runs those of other servers' clients, and those of own clients that no other server has
    ///     taken
    private record Forwarding(RequestForwarder forwarder, RequestForwarder handover, InProcessCommands commands) {

        void close() {
            forwarder.close();
            handover.close();
            commands.close();
        }
    }

    private FrontEnds(
            ServerConfig config,
            ServedStore store,
            @Nullable ClusterMember cluster,
            NettyTransport transport,
            PasswordAuthenticator passwords,
            @Nullable RemoteEndpoint remote,
            RequestLatencies latencies,
            NetLimits limits) {
        this.config = config;
        this.store = store;
        this.transport = transport;
        this.passwords = passwords;
        this.remote = remote;
        this.latencies = latencies;
        slowRequests = new SlowRequestLog(config.log().slow(), store.clock());
        connections =
                new ConnectionRegistry(limits, store.clock(), latencies, slowRequests, store.tenants()::throttledReads);
        serverInfo = new ServerInfo(
                OperatorPages.version(),
                config.memory().policy(),
                store.clock().nanos(),
                config.disks().isDurable(),
                store::diskProblems,
                () -> store.cache().lruFallbackReport().followsLru());
        ReloadableTls ofTransport = remote == null ? null : remote.reloadableTls();
        if (ofTransport != null) {
            certificateExpiries.put("transport.tls", ofTransport::expiresAt);
        }
        if (cluster != null && cluster.certificateExpiry() != null) {
            certificateExpiries.put("cluster.tls", () -> Objects.requireNonNull(cluster.certificateExpiry()));
        }
        HashSlotOwnership ownership = store.slotOwnership();
        forwarding = cluster == null || ownership == null ? null : openForwarding(cluster, ownership);
        if (forwarding != null && cluster != null && ownership != null) {
            cluster.runCommandsBy(forwarding.commands);
            cluster.openHandover(store.tenants().routers(), ownership, forwarding.handover);
        }
    }

    /// Opens the endpoint for other JVMs, and all that listeners need.
    ///
    /// @param cluster that the server joins later; null for none
    /// @throws IOException when an address cannot be had, or a file not be used
    /// @throws IllegalStateException when the transport cannot be had
    static FrontEnds open(ServerConfig config, ServedStore store, @Nullable ClusterMember cluster) throws IOException {
        NetLimits limits = connectionLimits(config);
        List<TenantConfig> tenants = config.access().tenants();
        RequestLatencies latencies = new RequestLatencies();
        NettyTransport transport = NettyTransport.open(
                config.network().transport(), config.network().loops());
        PasswordAuthenticator passwords = null;
        RemoteEndpoint remote = null;
        try {
            passwords = PasswordAuthenticator.open(tenants, store.clock());
            remote = RemoteEndpoint.open(
                    config.transport(),
                    tenants,
                    TenantKeyspaces::namespaceOf,
                    new RemoteEndpoint.ServedStores(
                            store.cache(),
                            store.domains(),
                            new NamespaceQuotas(tenants.size()),
                            cluster == null ? null : clusterStore(cluster, store, config)),
                    store.endpointListener(latencies));
            return new FrontEnds(config, store, cluster, transport, passwords, remote, latencies, limits);
        } catch (IOException | RuntimeException failed) {
            close(remote, passwords, transport);
            throw failed;
        }
    }

    private static void close(
            @Nullable RemoteEndpoint remote, @Nullable PasswordAuthenticator passwords, NettyTransport transport) {
        if (remote != null) {
            remote.close();
        }
        if (passwords != null) {
            passwords.close();
        }
        transport.eventLoops().shutdownGracefully(0, 0, TimeUnit.SECONDS);
    }

    private static NetLimits connectionLimits(ServerConfig config) throws IOException {
        int transport = config.transport().isServing() ? config.transport().connections() : 0;
        return config.limits()
                .withConnections(FileDescriptorLimit.maxConnections(
                        config.limits().connections(), transport, FileDescriptorLimit.limit()));
    }

    private static RemoteEndpoint.ClusterStore clusterStore(
            ClusterMember cluster, ServedStore store, ServerConfig config) {
        return new RemoteEndpoint.ClusterStore(
                cluster.views(),
                cluster.openStore(store.cache(), store.domains().stores().values(), config),
                cluster.dropListener(),
                cluster.views().ownSecret(),
                cluster.commands());
    }

    private Forwarding openForwarding(ClusterMember cluster, HashSlotOwnership ownership) {
        int loops = Math.clamp(Runtime.getRuntime().availableProcessors(), 1, MAX_FORWARD_LOOPS);
        InProcessCommands commands = new InProcessCommands(
                (tenant, dialect, anyKey) -> dialectServer(tenant, dialect, anyKey ? null : ownership),
                connections,
                loops);
        return new Forwarding(
                new RequestForwarder(ownership, cluster.openConnections(), commands),
                new RequestForwarder(ownership, cluster.openConnections(), commands),
                commands);
    }

    /// The protocol of requests that are passed on.
    ///
    /// @param ownership what refuses requests about keys of other servers; null to take all
    /// @return null when there is no such tenant
    private @Nullable DialectServer dialectServer(
            String tenant, Dialect dialect, @Nullable HashSlotOwnership ownership) {
        TenantKeyspaces tenants = store.tenants();
        if (!tenants.keyspaces().containsKey(tenant)) {
            return null;
        }
        ByteBudget incoming = tenants.incomingBudget(tenant);
        if (dialect == Dialect.LM) {
            LmProtocol lm = new LmProtocol(tenants.routerOf(tenant));
            lmProtocols.add(lm);
            return new DialectServer(lm, "", incoming);
        }
        ListenerAuth auth = auth(new ListenerAuthConfig(tenant, false, false, List.of(), List.of()));
        if (dialect == Dialect.HTTP) {
            HttpProtocol http =
                    new HttpProtocol(HttpConfig.ofPassedOn(auth, tenant, tenants.routerOf(tenant), ownership));
            httpProtocols.add(http);
            return new DialectServer(http, "", incoming);
        }
        RespProtocol resp = respProtocol(auth, ownership, dialect != Dialect.RESP_CLUSTER, null);
        return new DialectServer(resp, dialect == Dialect.RESP3 ? "HELLO 3\r\n" : "HELLO 2\r\n", incoming);
    }

    private ListenerAuth auth(ListenerAuthConfig auth) {
        return new ListenerAuth(auth, config.access().tenants(), passwords);
    }

    /// @param ownership null for clients that do not find the owners of keys
    /// @param passedOn whether other servers pass the commands on
    /// @param forwarder null for commands that are not passed on
    private RespProtocol respProtocol(
            ListenerAuth auth,
            @Nullable HashSlotOwnership ownership,
            boolean passedOn,
            @Nullable RequestForwarder forwarder) {
        Map<String, RespContext> contexts = new HashMap<>();
        Map<String, KeyspaceRouter> routers = store.tenants().routers();
        routers.forEach((tenant, router) -> contexts.put(
                tenant,
                new RespContext(
                        store.cache(),
                        store.cache()::unsavedBytes,
                        tenant,
                        routers.size() == 1,
                        router,
                        connections,
                        store.clock(),
                        serverInfo,
                        ownership,
                        passedOn,
                        forwarder)));
        RespProtocol resp = new RespProtocol(auth, contexts, arguments);
        respProtocols.add(resp);
        return resp;
    }

    /// Binds the listeners, and publishes events if the settings say so.
    ///
    /// @throws IOException when an address cannot be had, or a certificate not be used
    void listen(OperatorPages pages) throws IOException {
        for (ListenerConfig listen : config.access().listeners()) {
            listeners.add(Listener.open(
                    transport,
                    new Listener.ListenerSpec(
                            listen.socketAddress(),
                            protocols(listen, pages),
                            new CidrAllowList(listen.auth().cidrs()),
                            listen.auth().auth(),
                            tlsContext(listen.tls())),
                    connections));
        }
        if (config.events().isEnabled()) {
            publisher =
                    ZmqPublisher.open(config.events(), store.events(), config.isLoopbackOnly(), InstantSource.system());
        }
    }

    private List<Protocol> protocols(ListenerConfig listen, OperatorPages pages) {
        ListenerAuth auth = auth(listen.auth());
        String tenant = listen.auth().tenant();
        List<Protocol> spoken = new ArrayList<>();
        Set<ListenProtocol> asked = listen.protocols();
        if (asked.contains(ListenProtocol.RESP_CLUSTER)) {
            spoken.add(respProtocol(auth, store.slotOwnership(), false, null));
        } else if (asked.contains(ListenProtocol.RESP)) {
            spoken.add(respProtocol(auth, null, false, forwarder()));
        }
        if (asked.contains(ListenProtocol.LM)) {
            String owner = tenant == null ? TenantConfig.DEFAULT : tenant;
            LmProtocol lm = new LmProtocol(store.tenants().routerOf(owner), forwarder(), owner);
            lmProtocols.add(lm);
            spoken.add(lm);
        }
        boolean objects = asked.contains(ListenProtocol.HTTP);
        if (objects || asked.contains(ListenProtocol.PAGES)) {
            List<HttpEndpoint> beside = new ArrayList<>();
            if (objects) {
                beside.add(new HintEndpoint(store.tenants()::routerOf));
            }
            beside.addAll(pages.endpoints(listen));
            HttpProtocol http = new HttpProtocol(new HttpConfig(
                    auth,
                    objects ? store.tenants().routers() : Map.of(),
                    store.tenants().ownership().rules(),
                    pages.health(),
                    beside,
                    Set.copyOf(listen.auth().hosts()),
                    forwarder(),
                    null));
            httpProtocols.add(http);
            spoken.add(http);
        }
        return spoken;
    }

    private @Nullable Supplier<SslContext> tlsContext(@Nullable TlsConfig tls) throws IOException {
        if (tls == null) {
            return null;
        }
        ReloadableTls reloadableTls = ReloadableTls.open(tls);
        listenerTls.put(tls.path(), reloadableTls);
        certificateExpiries.put(tls.path(), reloadableTls::expiresAt);
        return reloadableTls::context;
    }

    /// Has what time brings be done from now on.
    void schedule(MaintenanceScheduler scheduler) {
        List<Path> passwordFiles = config.access().tenants().stream()
                .map(TenantConfig::passwordFile)
                .filter(Objects::nonNull)
                .map(Path::of)
                .toList();
        scheduler.scheduleReload("password files", passwordFiles, passwords::reload);
        listenerTls.forEach((path, tls) -> scheduler.scheduleReload(path + " files", tls.files(), tls::reload));
        if (remote != null) {
            scheduler.scheduleReload("secret files", remote.files(), remote::reload);
            scheduler.scheduleReload("transport.tls files", remote.certificateFiles(), remote::reloadCertificate);
        }
        scheduler.scheduleRepeating(CONNECTIONS_TICK_MILLIS, connections::tick);
        scheduler.scheduleSelfPaced(EVENTS_TICK_MILLIS, () -> {
            store.events().tick(connections.isDraining());
            return store.events().subscriberCount() > 0 ? EVENT_POLL_MILLIS : EVENTS_TICK_MILLIS;
        });
    }

    ConnectionRegistry connections() {
        return connections;
    }

    PasswordAuthenticator passwords() {
        return passwords;
    }

    RequestLatencies latencies() {
        return latencies;
    }

    SlowRequestLog slowRequests() {
        return slowRequests;
    }

    NettyTransport transport() {
        return transport;
    }

    /// The endpoint for other JVMs, or null without one.
    @Nullable
    RemoteEndpoint remote() {
        return remote;
    }

    /// Passes requests about values of other servers on; null for a server in no cluster.
    @Nullable
    RequestForwarder forwarder() {
        return forwarding == null ? null : forwarding.forwarder;
    }

    /// The publisher of events over ZeroMQ; null without one.
    @Nullable
    ZmqPublisher publisher() {
        return publisher;
    }

    /// When certificates expire, by the setting that names them.
    Map<String, Supplier<Instant>> certificateExpiries() {
        return certificateExpiries;
    }

    /// Requests by protocol.
    Map<String, RequestCounters> requestCounters() {
        return Map.of(
                "resp",
                        counters(
                                respProtocols,
                                RespProtocol::commandCount,
                                RespProtocol::errorCount,
                                RespProtocol::droppedAfterOkCount),
                "lm",
                        counters(
                                lmProtocols,
                                LmProtocol::requestCount,
                                LmProtocol::protocolErrorCount,
                                LmProtocol::droppedSilentlyCount),
                "http", counters(httpProtocols, HttpProtocol::requestCount, HttpProtocol::problemCount, _ -> 0));
    }

    private static <P> RequestCounters counters(
            List<P> all, ToLongFunction<P> asked, ToLongFunction<P> refused, ToLongFunction<P> dropped) {
        return new RequestCounters(
                () -> all.stream().mapToLong(asked).sum(),
                () -> all.stream().mapToLong(refused).sum(),
                () -> all.stream().mapToLong(dropped).sum());
    }

    /// Returns the addresses of all listeners, in the order of the configuration.
    List<InetSocketAddress> addresses() {
        return listeners.stream().map(Listener::address).toList();
    }

    /// Accepts no more and closes every connection as soon as its request is answered.
    ///
    /// @param timeout how long to wait for that
    /// @return whether all requests were answered; those that were not are cut off
    boolean drain(Duration timeout) {
        listeners.forEach(Listener::close);
        connections.drain();
        if (remote != null) {
            remote.drain();
        }
        long start = store.clock().nanos();
        boolean answered = allRequestsCompleted();
        while (!answered && store.clock().nanos() - start < timeout.toNanos()) {
            store.clock().sleep(DRAIN_STEP_NANOS);
            answered = allRequestsCompleted();
        }
        connections.closeAll(CloseReason.DRAIN);
        if (remote != null) {
            remote.close();
        }
        return answered;
    }

    private boolean allRequestsCompleted() {
        boolean remotes = remote == null || remote.isDrained(); // asked each time, as it tells by what it saw before
        return remotes && connections.openCount() == 0;
    }

    @Override
    public void close() {
        listeners.forEach(Listener::close);
        connections.closeAll(CloseReason.DRAIN);
        if (remote != null) {
            remote.close();
        }
        if (forwarding != null) {
            forwarding.close();
        }
        transport.eventLoops().shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        passwords.close();
        ZmqPublisher own = publisher;
        if (own != null) {
            own.close();
        }
    }

    /// How many connections there can be with the files that this process may open: each is one.
    static final class FileDescriptorLimit {

        private static final Logger LOG = System.getLogger(FileDescriptorLimit.class.getName());

        /// Descriptors that a server needs beside connections: libraries, disks, event loops, and health
        /// probes.
        private static final int RESERVED_DESCRIPTORS = 384;

        /// With fewer connections a server is of no use.
        private static final int MIN_CONNECTIONS = 64;

        private FileDescriptorLimit() {}

        /// Returns how many descriptors this process may open; `Long.MAX_VALUE` where that is not known.
        static long limit() {
            return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
                    ? unix.getMaxFileDescriptorCount()
                    : Long.MAX_VALUE;
        }

        /// The connections that a server takes: as many as are asked for, or as there can be.
        ///
        /// @param requested connections of `limits.connections`
        /// @param transport connections of `transport.connections`
        /// @throws IOException when there can be hardly any; the message names the limit, the need and what to
        ///     do
        static int maxConnections(int requested, int transport, long limit) throws IOException {
            long room = limit - RESERVED_DESCRIPTORS - transport;
            if (room >= requested) {
                return requested;
            }
            String lack = "this process may open " + limit + " files (ulimit -n); limits.connections of " + requested
                    + (transport == 0 ? "" : " and transport.connections of " + transport) + " take "
                    + ((long) requested + transport + RESERVED_DESCRIPTORS);
            String advice =
                    "raise it (ulimit -n 65536, systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536) or set"
                            + " limits.connections lower";
            if (room < Math.min(requested, MIN_CONNECTIONS)) {
                throw new IOException(lack + "; " + advice);
            }
            LOG.log(Level.WARNING, "{0}, so {1} connections are taken at one time; {2}", lack, room, advice);
            return (int) room;
        }
    }
}
