package io.kvcache.server;

import io.kvcache.core.time.Clock;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.console.ConsoleEndpoint;
import io.kvcache.server.console.ConsoleFiles;
import io.kvcache.server.event.EventEndpoint;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.forward.Dialect;
import io.kvcache.server.forward.InProcessCommands;
import io.kvcache.server.forward.InProcessCommands.Front;
import io.kvcache.server.forward.OwnerConnections;
import io.kvcache.server.forward.ReplyFramer;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.OperatorResources;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.SlotOwnership;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.server.metrics.ProcessMetrics;
import io.kvcache.server.metrics.PrometheusExporter;
import io.kvcache.server.metrics.PrometheusExporter.DiskLatencyMetrics;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.metrics.ServerMetrics;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespContext;
import io.kvcache.server.resp.RespContext.ServerInfo;
import io.kvcache.server.resp.RespProtocol;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.movement.TierTransferStats;
import io.kvcache.transport.endpoint.CommandRunner;
import io.kvcache.transport.endpoint.EndpointStats;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Makes the protocols of each listener, and the pages with health, metrics and statistics.
final class ProtocolFactory {

    private static final int MAX_FORWARD_LOOPS = 4;
    private static final String TEXT = "text/plain; charset=utf-8";

    private final TieredKvCache cache;
    private final TenantKeyspaces tenantKeyspaces;
    private final ConnectionRegistry connectionRegistry;
    private final Clock clock;
    private final MetricSources metricSources;
    private final HttpEndpoints httpEndpoints;
    private final ServerInfo facts;
    private final ByteBudget arguments;
    private final @Nullable SlotOwnership slotOwnership;
    private final PasswordAuthenticator passwordAuthenticator;
    private final List<TenantConfig> tenants;
    private final @Nullable Forwarding forwarding;
    private final List<RespProtocol> respProtocols = new CopyOnWriteArrayList<>();
    private final List<LmProtocol> lmProtocols = new CopyOnWriteArrayList<>();
    private final List<HttpProtocol> httpProtocols = new CopyOnWriteArrayList<>();

    /// The sources of the server's metrics.
    ///
    /// @param transport of the endpoint for other JVMs; null in it where there is none
    /// @param additional meters of what is only sometimes there
    record MetricSources(
            ConnectionRegistry connectionRegistry,
            RequestLatencies latencies,
            PasswordAuthenticator passwordAuthenticator,
            Supplier<@Nullable EndpointStats> transport,
            AccessRecording uses,
            List<MeterBinder> additional) {}

    /// What connects the values of a cluster's servers.
    ///
    /// @param ownership says who owns which
    /// @param connections makes new ones to the other servers, which the receiver closes
    record ClusterLinks(SlotOwnership ownership, Supplier<OwnerConnections> connections) {}

    /// Both sides of requests that are passed on.
    ///
    /// @param handover passes values on, so that clients do not wait for them
    /// @param serving runs those of other servers' clients, unless another server owns their keys
    /// @param own runs those of own clients that no other server has taken
    private record Forwarding(
            RequestForwarder forwarder, RequestForwarder handover, InProcessCommands serving, InProcessCommands own) {

        void close() {
            forwarder.close();
            handover.close();
            serving.close();
            own.close();
        }
    }

    /// @param links null for a server in no cluster
    ProtocolFactory(
            TieredKvCache cache,
            TenantKeyspaces tenantKeyspaces,
            MetricSources metricSources,
            Clock clock,
            HttpEndpoints httpEndpoints,
            ServerConfig config,
            @Nullable ClusterLinks links) {
        slotOwnership = links == null ? null : links.ownership;
        passwordAuthenticator = metricSources.passwordAuthenticator;
        tenants = config.access().tenants();
        this.metricSources = metricSources;
        connectionRegistry = metricSources.connectionRegistry;
        this.httpEndpoints = httpEndpoints;
        this.cache = cache;
        this.tenantKeyspaces = tenantKeyspaces;
        this.clock = clock;
        facts = new ServerInfo(
                version(),
                config.memory().policy(),
                clock.nanos(),
                config.disks().isDurable(),
                () -> diskProblems(cache),
                () -> cache.lruFallbackReport().followsLru());
        arguments = RespProtocol.argumentsOfHeap();
        forwarding = links == null ? null : openForwarding(links);
    }

    private Forwarding openForwarding(ClusterLinks links) {
        int loops = Math.clamp(Runtime.getRuntime().availableProcessors(), 1, MAX_FORWARD_LOOPS);
        InProcessCommands serving = new InProcessCommands(
                (tenant, dialect) -> front(tenant, dialect, links.ownership), connectionRegistry, loops);
        InProcessCommands own =
                new InProcessCommands((tenant, dialect) -> front(tenant, dialect, null), connectionRegistry, 1);
        return new Forwarding(
                new RequestForwarder(links.ownership, links.connections.get(), own),
                new RequestForwarder(links.ownership, links.connections.get(), own),
                serving,
                own);
    }

    /// The protocol of requests that are passed on.
    ///
    /// @param ownership what refuses requests about keys of other servers; null to take all
    /// @return null when there is no such tenant
    private @Nullable Front front(String tenant, Dialect dialect, @Nullable SlotOwnership ownership) {
        if (!tenantKeyspaces.keyspaces().containsKey(tenant)) {
            return null;
        }
        ByteBudget incoming = tenantKeyspaces.incomingBudget(tenant);
        if (dialect == Dialect.LM) {
            LmProtocol lm = new LmProtocol(tenantKeyspaces.routerOf(tenant));
            lmProtocols.add(lm);
            return new Front(lm, "", LmProtocol::replyFramer, incoming);
        }
        ListenerAuth auth = new ListenerAuth(
                new ListenerAuthConfig(tenant, false, false, List.of(), List.of()), tenants, passwordAuthenticator);
        if (dialect == Dialect.HTTP || dialect == Dialect.HTTP_HEAD) {
            HttpProtocol http =
                    new HttpProtocol(HttpConfig.ofPassedOn(auth, tenant, tenantKeyspaces.routerOf(tenant), ownership));
            httpProtocols.add(http);
            return new Front(http, "", () -> new ReplyFramer.Http(dialect == Dialect.HTTP), incoming);
        }
        boolean passedOn = dialect != Dialect.RESP_CLUSTER;
        RespProtocol resp = new RespProtocol(auth, respContexts(ownership, passedOn, null), arguments);
        respProtocols.add(resp);
        return new Front(
                resp, dialect == Dialect.RESP3 ? "HELLO 3\r\n" : "HELLO 2\r\n", ReplyFramer.Resp::new, incoming);
    }

    /// What runs requests that other servers pass on. Only in a cluster.
    CommandRunner commandRunner() {
        return Objects.requireNonNull(forwarding).serving;
    }

    /// What passes values on that another server owns. Only in a cluster.
    RequestForwarder handoverForwarder() {
        return Objects.requireNonNull(forwarding).handover;
    }

    private @Nullable RequestForwarder forwarder() {
        return forwarding == null ? null : forwarding.forwarder;
    }

    /// Passes nothing on any more.
    void close() {
        if (forwarding != null) {
            forwarding.close();
        }
    }

    /// Returns the protocols that a listener speaks.
    ///
    /// @param listenerAuth which clients it accepts
    List<Protocol> protocolsFor(ListenerConfig listen, ListenerAuth listenerAuth) {
        List<Protocol> spoken = new ArrayList<>();
        Set<ListenProtocol> asked = listen.protocols();
        boolean redisCluster = asked.contains(ListenProtocol.RESP_CLUSTER);
        if (redisCluster || asked.contains(ListenProtocol.RESP)) {
            RespProtocol resp = new RespProtocol(
                    listenerAuth,
                    redisCluster ? respContexts(slotOwnership, false, null) : respContexts(null, false, forwarder()),
                    arguments);
            respProtocols.add(resp);
            spoken.add(resp);
        }
        if (asked.contains(ListenProtocol.LM)) {
            spoken.add(lmProtocol(
                    listen.auth().tenant() == null
                            ? TenantConfig.DEFAULT
                            : listen.auth().tenant()));
        }
        boolean objects = asked.contains(ListenProtocol.HTTP);
        boolean pages = asked.contains(ListenProtocol.PAGES);
        if (objects || pages) {
            Map<String, KeyspaceRouter> served = objects ? tenantKeyspaces.routers() : Map.of();
            List<HttpEndpoint> beside = new ArrayList<>();
            beside.addAll(objects ? httpEndpoints.tenantEndpoints() : List.of());
            beside.addAll(pages ? pagesEndpoints(listen) : List.of(new OperatorEndpointsNotice(listen)));
            HttpProtocol http = new HttpProtocol(new HttpConfig(
                    listenerAuth,
                    served,
                    tenantKeyspaces.ownershipRules(),
                    healthEndpoints(),
                    beside,
                    Set.copyOf(listen.auth().hosts()),
                    forwarder(),
                    null));
            httpProtocols.add(http);
            spoken.add(http);
        }
        return spoken;
    }

    /// Endpoints of a listener with `pages`. Those that tell of all tenants are for administrators where clients
    /// authenticate or act as its tenant; elsewhere all see them, and other machines change nothing.
    private List<HttpEndpoint> pagesEndpoints(ListenerConfig listen) {
        boolean authenticated = listen.auth().auth();
        String tenant = listen.auth().tenant();
        boolean ofTenants = authenticated || (tenant != null && !tenant.equals(TenantConfig.DEFAULT));
        boolean loopback = listen.socketAddress().getAddress().isLoopbackAddress();
        Viewer.Rules rules = new Viewer.Rules(
                !ofTenants && loopback,
                tenants.stream()
                        .filter(TenantConfig::admin)
                        .map(TenantConfig::name)
                        .collect(Collectors.toSet()),
                !authenticated && !loopback);
        List<HttpEndpoint> all = new ArrayList<>();
        List<HttpEndpoint> operators = new ArrayList<>(httpEndpoints.operatorEndpoints());
        operators.add(operatorPages());
        for (HttpEndpoint each : operators) {
            all.add(ofTenants ? new AdministratorEndpoint(each, rules) : each);
        }
        all.add(new EventEndpoint(httpEndpoints.events(), rules));
        StatsEndpoint stats = new StatsEndpoint(cache, tenantKeyspaces, metricSources, version());
        all.add(new StatsPage(stats, ofTenants ? rules : Viewer.Rules.OF_OPERATORS));
        all.add(new ConsoleEndpoint(httpEndpoints.console(), rules));
        all.add(new ConsoleFiles());
        return rules.readOnly()
                ? all.stream()
                        .<HttpEndpoint>map(each -> new ReadOnlyEndpoint(each, listen))
                        .toList()
                : all;
    }

    private LmProtocol lmProtocol(String tenant) {
        LmProtocol lm = new LmProtocol(tenantKeyspaces.routerOf(tenant), forwarder(), tenant);
        lmProtocols.add(lm);
        return lm;
    }

    /// @param ownership null for clients that do not find the owners of keys
    /// @param passedOn whether other servers pass the commands on
    /// @param forwarder null for commands that are not passed on
    private Map<String, RespContext> respContexts(
            @Nullable SlotOwnership ownership, boolean passedOn, @Nullable RequestForwarder forwarder) {
        Map<String, RespContext> contexts = new HashMap<>();
        Map<String, KeyspaceRouter> reaches = tenantKeyspaces.routers();
        boolean sole = reaches.size() == 1;
        reaches.forEach((tenant, keyspaceRouter) -> contexts.put(
                tenant,
                new RespContext(
                        cache,
                        cache::unsavedBytes,
                        tenant,
                        sole,
                        keyspaceRouter,
                        connectionRegistry,
                        clock,
                        facts,
                        ownership,
                        passedOn,
                        forwarder)));
        return contexts;
    }

    private Map<String, TextEndpoint> healthEndpoints() {
        Map<String, TextEndpoint> pages = new HashMap<>();
        pages.put("/health/live", new TextEndpoint(TEXT, true, () -> true, () -> "live\n"));
        ReadinessCheck readinessCheck = new ReadinessCheck(cache, connectionRegistry, httpEndpoints.notServing());
        pages.put("/health/ready", new TextEndpoint(TEXT, true, readinessCheck::isReady, readinessCheck));
        return pages;
    }

    /// The pages that tell of all tenants.
    private TextPages operatorPages() {
        Map<String, TextEndpoint> pages = new HashMap<>();
        List<MeterBinder> binders = new ArrayList<>(List.of(
                new KvCacheMetrics(cache, "server"),
                new DiskLatencyMetrics(cache, "server"),
                new ProcessMetrics(version()),
                new ServerMetrics(
                        tenantKeyspaces.keyspaces(),
                        connectionRegistry,
                        Map.of(
                                "resp",
                                        requestCounters(
                                                respProtocols,
                                                RespProtocol::commandCount,
                                                RespProtocol::errorCount,
                                                RespProtocol::droppedAfterOkCount),
                                "lm",
                                        requestCounters(
                                                lmProtocols,
                                                LmProtocol::requestCount,
                                                LmProtocol::protocolErrorCount,
                                                LmProtocol::droppedSilentlyCount),
                                "http",
                                        requestCounters(
                                                httpProtocols,
                                                HttpProtocol::requestCount,
                                                HttpProtocol::problemCount,
                                                _ -> 0)),
                        metricSources.passwordAuthenticator),
                KvCacheMetrics.ofOtherSizes(metricSources.uses::missRatioCurve),
                ServerMetrics.ofTrace(metricSources.uses::traceStats),
                metricSources.latencies));
        if (metricSources.transport.get() != null) {
            binders.add(ServerMetrics.ofEndpoint(() -> Objects.requireNonNull(metricSources.transport.get())));
        }
        binders.addAll(metricSources.additional);
        RequestForwarder forwarder = forwarder();
        if (forwarder != null) {
            binders.add(ServerMetrics.ofForwarding(forwarder));
        }
        PrometheusExporter metrics = new PrometheusExporter(binders);
        pages.put("/metrics", TextEndpoint.of(PrometheusExporter.CONTENT_TYPE, metrics));
        return new TextPages(pages);
    }

    private static <P> ServerMetrics.RequestCounters requestCounters(
            List<P> all, ToLongFunction<P> asked, ToLongFunction<P> refused, ToLongFunction<P> dropped) {
        return new ServerMetrics.RequestCounters(
                () -> all.stream().mapToLong(asked).sum(),
                () -> all.stream().mapToLong(refused).sum(),
                () -> all.stream().mapToLong(dropped).sum());
    }

    /// The server's version, as a jar has it.
    static String version() {
        String version = CacheServer.class.getPackage().getImplementationVersion();
        return version == null ? "development" : version;
    }

    /// Answers requests for operators' pages at a listener without `pages`, and names the setting that serves them.
    private record OperatorEndpointsNotice(ListenerConfig listen) implements HttpEndpoint {

        private static final List<String> OPERATOR_PATHS = Stream.concat(
                        Stream.of("/metrics", "/console"),
                        OperatorResources.NAMES.stream().map(name -> "/v1/" + name))
                .toList();

        @Override
        public List<String> paths() {
            return List.of();
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            boolean elsewhere =
                    OPERATOR_PATHS.stream().anyMatch(each -> path.equals(each) || path.startsWith(each + "/"));
            return elsewhere
                    ? ProblemDetails.withType(
                                    HttpResponseStatus.NOT_FOUND,
                                    "no-pages",
                                    path + " is for operators, and this listener does not serve it; add pages to "
                                            + listen.path() + ".protocols, or use a listener that has pages")
                            .toHandler()
                    : null;
        }
    }

    /// Pages of text by path.
    private record TextPages(Map<String, TextEndpoint> pages) implements HttpEndpoint {

        @Override
        public List<String> paths() {
            return List.copyOf(pages.keySet());
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            TextEndpoint page = pages.get(path);
            return page == null ? null : HttpResponder.slowPageHandler(request, page);
        }
    }

    /// `/v1/stats`: everything for administrators, and of each tenant its own.
    private record StatsPage(StatsEndpoint stats, Viewer.Rules rules) implements HttpEndpoint {

        private static final String PATH = "/v1/stats";

        @Override
        public List<String> paths() {
            return List.of(PATH);
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            if (!path.equals(PATH)) {
                return null;
            }
            Supplier<String> body =
                    rules.viewer(tenant).administrator() ? stats::ofServer : () -> stats.ofTenant(tenant);
            return HttpResponder.slowPageHandler(request, TextEndpoint.of("application/json", body));
        }
    }

    /// Shows an operator's pages to administrators alone.
    private record AdministratorEndpoint(HttpEndpoint endpoint, Viewer.Rules rules) implements HttpEndpoint {

        @Override
        public List<String> paths() {
            return endpoint.paths();
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            HttpRequestHandler found = endpoint.handlerFor(request, path, tenant);
            return found == null || rules.viewer(tenant).administrator()
                    ? found
                    : Viewer.administratorsOnly(
                            path + " tells of all tenants, and tenant " + tenant + " is not an administrator");
        }
    }

    /// Shows an operator's pages, and changes nothing.
    private record ReadOnlyEndpoint(HttpEndpoint endpoint, ListenerConfig listen) implements HttpEndpoint {

        @Override
        public List<String> paths() {
            return endpoint.paths();
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            HttpRequestHandler found = endpoint.handlerFor(request, path, tenant);
            boolean reads =
                    request.method().equals(HttpMethod.GET) || request.method().equals(HttpMethod.HEAD);
            return found == null || reads
                    ? found
                    : ProblemDetails.withType(
                                    HttpResponseStatus.FORBIDDEN,
                                    "read-only",
                                    "other machines reach " + listen.path() + " without authentication, so it takes"
                                            + " GET and HEAD only; send this to a listener with pages that is on"
                                            + " loopback or has auth: true")
                            .toHandler();
        }
    }

    /// Returns what is not as it should be of the disks now.
    private static List<String> diskProblems(TieredKvCache cache) {
        return cache.diskStats().stream()
                .map(TierTransferStats::problem)
                .filter(problem -> !problem.isEmpty())
                .toList();
    }

    /// The page `/health/ready`: a word, and a line for each thing that is not as it should be.
    ///
    /// A server whose disk is out serves what it has in memory, so it stays ready.
    private static final class ReadinessCheck implements Supplier<String> {

        private final TieredKvCache cache;
        private final ConnectionRegistry connectionRegistry;
        private final Supplier<String> notServing;

        ReadinessCheck(TieredKvCache cache, ConnectionRegistry connectionRegistry, Supplier<String> notServing) {
            this.cache = cache;
            this.connectionRegistry = connectionRegistry;
            this.notServing = notServing;
        }

        boolean isReady() {
            return !connectionRegistry.isShutdownAnnounced() && notServing.get().isEmpty();
        }

        private String state() {
            if (connectionRegistry.isDraining()) {
                return "draining\n";
            }
            if (connectionRegistry.isShutdownAnnounced()) {
                return "leaving\n";
            }
            String reason = notServing.get();
            return (reason.isEmpty() ? "ready" : reason) + "\n";
        }

        @Override
        public String get() {
            StringBuilder text = new StringBuilder(state());
            if (cache.isRecovering()) {
                text.append("recovering: the contents of the disks are not all known yet, ")
                        .append(cache.offloadStats().restored())
                        .append(" blocks and values so far; the rest are misses until then\n");
            }
            diskProblems(cache).forEach(problem -> text.append(problem).append('\n'));
            return text.toString();
        }
    }

    /// The HTTP endpoints beside objects and pages.
    ///
    /// @param tenantEndpoints of each tenant its own
    /// @param operatorEndpoints that tell of all tenants, where `pages` are
    /// @param events of which each tenant sees its own, where `pages` are
    /// @param console what the console shows
    /// @param notServing why the server does not serve in the cluster that it belongs to; empty when it does
    record HttpEndpoints(
            List<HttpEndpoint> tenantEndpoints,
            List<HttpEndpoint> operatorEndpoints,
            EventFeed events,
            ConsoleEndpoint.ConsoleParts console,
            Supplier<String> notServing) {}
}
