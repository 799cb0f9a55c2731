package io.kvcache.server;

import io.kvcache.core.CacheStats;
import io.kvcache.core.DeviceSupport.ResizableTier;
import io.kvcache.core.DeviceSupport.Resized;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.tier.TierState;
import io.kvcache.server.cluster.ClusterEndpoint;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ConfigReader.SettingInForce;
import io.kvcache.server.config.GpuConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.RecomputeConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.Units;
import io.kvcache.server.console.ConsoleEndpoint;
import io.kvcache.server.console.ConsoleEndpoint.ConsoleParts;
import io.kvcache.server.console.ConsoleFiles;
import io.kvcache.server.console.ConsoleSources;
import io.kvcache.server.console.LiveFeed;
import io.kvcache.server.console.LoadHistory;
import io.kvcache.server.event.EventEndpoint;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.OperatorResources;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.metrics.PrometheusExporter;
import io.kvcache.server.metrics.PrometheusExporter.DiskLatencyMetrics;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.metrics.ServerMetrics;
import io.kvcache.server.metrics.ServerMetrics.ProcessMetrics;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.remote.RemoteEndpoint;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.HintStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.kvcache.transport.endpoint.EndpointStats;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/// What a server shows of itself over HTTP: health, metrics, statistics, events, disks, the cluster and the
/// console.
///
/// **Threads.** Any.
final class OperatorPages {

    private static final Logger LOG = System.getLogger(OperatorPages.class.getName());
    private static final String TEXT = "text/plain; charset=utf-8";

    private static final List<String> OPERATOR_PATHS = Stream.concat(
                    Stream.of("/metrics", "/console"),
                    OperatorResources.NAMES.stream().map(name -> "/v1/" + name))
            .toList();

    private final ServerConfig config;
    private final ServedStore store;
    private final FrontEnds fronts;
    private final @Nullable ClusterMember cluster;
    private final LoadHistory history;
    private final LiveFeed live;
    private final ConsoleParts console;
    private final PrometheusExporter metrics;
    private volatile List<SettingInForce> settings = List.of();

    /// @param cluster null for a server in none
    OperatorPages(ServerConfig config, ServedStore store, FrontEnds fronts, @Nullable ClusterMember cluster) {
        this.config = config;
        this.store = store;
        this.fronts = fronts;
        this.cluster = cluster;
        ConsoleSources sources = consoleSources(config, store, fronts, cluster);
        history = new LoadHistory(sources);
        live = new LiveFeed(sources);
        console = new ConsoleParts(sources, history, live, () -> settings);
        metrics = new PrometheusExporter(meters(config, store, fronts, cluster));
    }

    /// The server's version, as a jar has it.
    static String version() {
        String version = CacheServer.class.getPackage().getImplementationVersion();
        return version == null ? "development" : version;
    }

    private static ConsoleSources consoleSources(
            ServerConfig config, ServedStore store, FrontEnds fronts, @Nullable ClusterMember cluster) {
        RecomputeConfig recompute = config.disks().recompute();
        PrefillCost cost = recompute.cost();
        RemoteEndpoint remote = fronts.remote();
        return new ConsoleSources(
                store.cache(),
                store.tenants().keyspaces(),
                fronts.connections(),
                fronts.latencies(),
                fronts.slowRequests(),
                store.misses(),
                () -> remote == null ? Map.of() : remote.clients(),
                store::missRatioCurve,
                store.clock(),
                InstantSource.system(),
                recompute.chunkTokens(),
                cost == null ? null : 1 / cost.secondsPerToken(),
                config.memory().policy().commandName(),
                version(),
                cluster == null ? null : (groups, from) -> cluster.dropEverywhere(groups, from),
                config.disks().disks().stream().anyMatch(disk -> disk.bytesPerDay() > 0));
    }

    private static List<MeterBinder> meters(
            ServerConfig config, ServedStore store, FrontEnds fronts, @Nullable ClusterMember cluster) {
        List<MeterBinder> meters = new ArrayList<>(List.of(
                new KvCacheMetrics(store.cache(), "server"),
                new DiskLatencyMetrics(store.cache(), "server"),
                new ProcessMetrics(version()),
                new ServerMetrics(
                        store.tenants().keyspaces(),
                        fronts.connections(),
                        fronts.requestCounters(),
                        fronts.passwords()),
                KvCacheMetrics.ofOtherSizes(store::missRatioCurve),
                ServerMetrics.ofTrace(store::traceStats),
                fronts.latencies(),
                ServerMetrics.ofCertificates(fronts.certificateExpiries())));
        RemoteEndpoint remote = fronts.remote();
        if (remote != null) {
            meters.add(ServerMetrics.ofEndpoint(remote::stats));
            store.domains().stores().forEach((name, each) -> meters.add(new KvCacheMetrics(each, "domain " + name)));
        }
        if (!config.disks().gpus().isEmpty()) {
            meters.addAll(store.gpus().meters());
        }
        if (config.events().isEnabled()) {
            meters.add(ServerMetrics.ofPublisher(fronts::publisher));
        }
        if (cluster != null) {
            meters.add(ServerMetrics.ofCluster(cluster));
        }
        if (fronts.forwarder() != null) {
            meters.add(ServerMetrics.ofForwarding(fronts.forwarder()));
        }
        return meters;
    }

    /// Has what time brings be done from now on.
    void schedule(MaintenanceScheduler scheduler) {
        history.tick();
        scheduler.scheduleRepeating(TimeUnit.SECONDS.toMillis(LoadHistory.SERVER_SECONDS), history::tick);
        scheduler.scheduleRepeating(LiveFeed.INTERVAL_MILLIS, live::tick);
    }

    /// Has the console show the settings in force.
    void showSettings(List<SettingInForce> inForce) {
        settings = List.copyOf(inForce);
    }

    /// The pages of health, which all see.
    Map<String, TextEndpoint> health() {
        return Map.of(
                "/health/live", new TextEndpoint(TEXT, true, () -> true, () -> "live\n"),
                "/health/ready", new TextEndpoint(TEXT, true, this::isReady, this::readiness));
    }

    private String notServingReason() {
        return cluster == null ? "" : cluster.notServingReason();
    }

    /// A server whose disk is out serves what it has in memory, so it stays ready.
    private boolean isReady() {
        return !fronts.connections().isShutdownAnnounced() && notServingReason().isEmpty();
    }

    /// A word, and a line for each thing that is not as it should be.
    private String readiness() {
        StringBuilder text = new StringBuilder();
        String reason = notServingReason();
        if (fronts.connections().isDraining()) {
            text.append("draining");
        } else if (fronts.connections().isShutdownAnnounced()) {
            text.append("leaving");
        } else {
            text.append(reason.isEmpty() ? "ready" : reason);
        }
        text.append('\n');
        if (store.cache().isRecovering()) {
            text.append("recovering: the contents of the disks are not all known yet, ")
                    .append(store.cache().offloadStats().restored())
                    .append(" blocks and values so far; the rest are misses until then\n");
        }
        store.diskProblems().forEach(problem -> text.append(problem).append('\n'));
        return text.toString();
    }

    /// Endpoints of a listener. Those that tell of all tenants are for administrators where clients authenticate
    /// or act as its tenant; elsewhere all see them, and other machines change nothing. A listener without `pages`
    /// says which setting has them.
    List<HttpEndpoint> endpoints(ListenerConfig listen) {
        if (!listen.protocols().contains(ListenProtocol.PAGES)) {
            return List.of(new OperatorEndpointsNotice(listen));
        }
        boolean authenticated = listen.auth().auth();
        String tenant = listen.auth().tenant();
        boolean ofTenants = authenticated || (tenant != null && !tenant.equals(TenantConfig.DEFAULT));
        boolean loopback = listen.socketAddress().getAddress().isLoopbackAddress();
        Viewer.Rules rules = new Viewer.Rules(
                !ofTenants && loopback,
                config.access().tenants().stream()
                        .filter(TenantConfig::admin)
                        .map(TenantConfig::name)
                        .collect(Collectors.toSet()),
                !authenticated && !loopback);
        List<HttpEndpoint> all = new ArrayList<>();
        for (HttpEndpoint each : List.of(
                new DiskEndpoint(store.cache(), store.gpus().tiersByConfig()),
                new ClusterEndpoint(cluster),
                new MetricsPage(metrics))) {
            all.add(ofTenants ? forAdministrators(each, rules) : each);
        }
        all.add(new EventEndpoint(store.events(), rules));
        all.add(new StatsEndpoint(store, fronts, ofTenants ? rules : Viewer.Rules.OF_OPERATORS));
        all.add(new ConsoleEndpoint(console, rules));
        all.add(new ConsoleFiles());
        return rules.readOnly()
                ? all.stream().map(each -> readOnly(each, listen)).toList()
                : all;
    }

    /// Answers requests for operators' pages at a listener without `pages`, and names the setting that serves
    /// them.
    private record OperatorEndpointsNotice(ListenerConfig listen) implements HttpEndpoint {

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

    private record MetricsPage(Supplier<String> metrics) implements HttpEndpoint {

        private static final String PATH = "/metrics";

        @Override
        public List<String> paths() {
            return List.of(PATH);
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            return path.equals(PATH)
                    ? HttpResponder.slowPageHandler(request, TextEndpoint.of(PrometheusExporter.CONTENT_TYPE, metrics))
                    : null;
        }
    }

    /// Refuses some of an endpoint's requests.
    private record GuardedEndpoint(HttpEndpoint endpoint, Guard guard) implements HttpEndpoint {

        interface Guard {

            /// Returns the answer to a request that is refused, or null for others.
            @Nullable
            HttpRequestHandler refusal(HttpRequest request, String path, String tenant);
        }

        @Override
        public List<String> paths() {
            return endpoint.paths();
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            HttpRequestHandler found = endpoint.handlerFor(request, path, tenant);
            HttpRequestHandler refusal = found == null ? null : guard.refusal(request, path, tenant);
            return refusal == null ? found : refusal;
        }
    }

    private static GuardedEndpoint forAdministrators(HttpEndpoint endpoint, Viewer.Rules rules) {
        return new GuardedEndpoint(
                endpoint,
                (_, path, tenant) -> rules.viewer(tenant).administrator()
                        ? null
                        : Viewer.administratorsOnly(
                                path + " tells of all tenants, and tenant " + tenant + " is not an administrator"));
    }

    private static HttpEndpoint readOnly(HttpEndpoint endpoint, ListenerConfig listen) {
        return new GuardedEndpoint(
                endpoint,
                (request, _, _) -> request.method().equals(HttpMethod.GET)
                                || request.method().equals(HttpMethod.HEAD)
                        ? null
                        : ProblemDetails.withType(
                                        HttpResponseStatus.FORBIDDEN,
                                        "read-only",
                                        "other machines reach " + listen.path() + " without authentication, so it takes"
                                                + " GET and HEAD only; send this to a listener with pages that is on"
                                                + " loopback or has auth: true")
                                .toHandler());
    }

    /// `/v1/disks`: lists the disks and GPUs with their states, reopens a failed one, and gives a GPU another size.
    ///
    /// The store retries a failed disk after a pause that grows to ten minutes, and never one that cannot be
    /// written. An operator that has mended a disk need not wait for that.
    static final class DiskEndpoint implements HttpEndpoint {

        private static final String DISKS_PATH = "/v1/disks";
        private static final String DISK_PREFIX = DISKS_PATH + "/";
        private static final String REOPEN_SUFFIX = "/reopen";
        private static final String RESIZE_SUFFIX = "/resize";
        private static final int DEFAULT_RESIZE_SECONDS = 30;
        private static final int MAX_RESIZE_SECONDS = 600;

        private final TieredKvCache cache;
        private final Map<GpuConfig, ResizableTier> gpus;

        /// @param gpus tiers of the cache
        DiskEndpoint(TieredKvCache cache, Map<GpuConfig, ResizableTier> gpus) {
            this.cache = cache;
            this.gpus = gpus;
        }

        @Override
        public List<String> paths() {
            return List.of(
                    DISKS_PATH,
                    DISK_PREFIX + "{number or directory}" + REOPEN_SUFFIX,
                    DISK_PREFIX + "{number or GPU}" + RESIZE_SUFFIX);
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            if (path.equals(DISKS_PATH)) {
                return request.method().name().equals("GET")
                        ? (HttpRequestHandler.BodylessHandler)
                                out -> out.sendJson(HttpResponseStatus.OK, Map.of("disks", describeAll()))
                        : HttpResponder.methodNotAllowed(request, "GET");
            }
            String suffix = path.endsWith(RESIZE_SUFFIX) ? RESIZE_SUFFIX : REOPEN_SUFFIX;
            if (!path.startsWith(DISK_PREFIX)
                    || !path.endsWith(suffix)
                    || path.length() < DISK_PREFIX.length() + suffix.length()) {
                return null;
            }
            if (!request.method().name().equals("POST")) {
                return HttpResponder.methodNotAllowed(request, "POST");
            }
            String name = PercentDecoder.decode(path.substring(DISK_PREFIX.length(), path.length() - suffix.length()));
            List<TierTransferStats> disks = cache.diskStats();
            int number = numberOf(name, disks);
            if (number < 0) {
                return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "there is no disk " + name + diskNames(disks))
                        .toHandler();
            }
            return suffix.equals(RESIZE_SUFFIX)
                    ? resizeHandler(number, new QueryStringDecoder(request.uri()).parameters())
                    : (HttpRequestHandler.BodylessHandler) out -> reopen(number, out);
        }

        private static int numberOf(@Nullable String name, List<TierTransferStats> disks) {
            return IntStream.range(0, disks.size())
                    .filter(each -> Integer.toString(each).equals(name)
                            || disks.get(each).name().equals("disk " + name)
                            || disks.get(each).name().equals(name))
                    .findFirst()
                    .orElse(-1);
        }

        /// On a thread of its own, as blocks that are held are waited for.
        private HttpRequestHandler resizeHandler(int number, Map<String, List<String>> query) {
            String name = cache.diskStats().get(number).name();
            GpuConfig gpu = gpuNamed(name);
            ResizableTier tier = gpu == null ? null : gpus.get(gpu);
            if (gpu == null || tier == null || !gpu.canResize()) {
                return fixedSize(name, gpu);
            }
            String size = query.getOrDefault("bytes", List.of("")).getFirst();
            String seconds = query.getOrDefault("timeout", List.of(Integer.toString(DEFAULT_RESIZE_SECONDS)))
                    .getFirst();
            OptionalLong bytes = Units.bytes(size);
            if (bytes.isEmpty()) {
                return badRequest("bytes is '" + size + "'; it takes " + Units.SIZE_FORMATS);
            }
            if (!seconds.matches("\\d{1,3}") || Integer.parseInt(seconds) > MAX_RESIZE_SECONDS) {
                return badRequest("timeout is '" + seconds + "'; it takes seconds, 0 to " + MAX_RESIZE_SECONDS);
            }
            Duration timeout = Duration.ofSeconds(Integer.parseInt(seconds));
            return (HttpRequestHandler.BodylessHandler) out -> Thread.ofVirtual()
                    .start(() -> {
                        Consumer<HttpResponder> answer = resize(number, tier, bytes.getAsLong(), timeout);
                        out.sendLater(() -> answer.accept(out), () -> {});
                    });
        }

        private static HttpRequestHandler fixedSize(String name, @Nullable GpuConfig gpu) {
            return ProblemDetails.withType(
                            HttpResponseStatus.CONFLICT,
                            "fixed-size",
                            name + " keeps its size; "
                                    + (gpu == null
                                            ? "GPUs alone may have another one"
                                            : gpu.name() + ".max_bytes in the settings lets it have another one"))
                    .toHandler();
        }

        private Consumer<HttpResponder> resize(int number, ResizableTier tier, long bytes, Duration timeout) {
            Resized resized;
            try {
                resized = tier.resize(bytes, timeout);
            } catch (IllegalArgumentException refused) {
                return out -> out.sendProblem(
                        new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(refused.getMessage())));
            }
            LOG.log(
                    Level.INFO,
                    "{0} has {1} now, and had {2}, for an operator{3}",
                    tier.name(),
                    ByteSizeFormat.format(resized.after()),
                    ByteSizeFormat.format(resized.before()),
                    resized.reason().isEmpty()
                            ? ""
                            : ", not " + ByteSizeFormat.format(bytes) + ": " + resized.reason());
            Map<String, Object> all = describe(cache.diskStats(), number);
            all.put("bytes", resized.after());
            all.put("bytesBefore", resized.before());
            all.put("bytesAsked", bytes);
            all.put("reason", resized.reason());
            return out -> out.sendJson(HttpResponseStatus.OK, all);
        }

        private static HttpRequestHandler badRequest(String detail) {
            return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, detail).toHandler();
        }

        private @Nullable GpuConfig gpuNamed(String name) {
            return gpus.entrySet().stream()
                    .filter(each -> each.getValue().name().equals(name))
                    .map(Map.Entry::getKey)
                    .findFirst()
                    .orElse(null);
        }

        private void reopen(int number, HttpResponder out) {
            List<TierTransferStats> disks = cache.diskStats();
            boolean serves = disks.get(number).state() == TierState.SERVING;
            if (!serves) {
                cache.reopenDisk(number);
            }
            out.sendJson(serves ? HttpResponseStatus.OK : HttpResponseStatus.ACCEPTED, describe(disks, number));
        }

        private static String diskNames(List<TierTransferStats> disks) {
            return disks.isEmpty() ? "; there are none" : "; there are 0 to " + (disks.size() - 1);
        }

        private List<Map<String, Object>> describeAll() {
            List<TierTransferStats> disks = cache.diskStats();
            return IntStream.range(0, disks.size())
                    .mapToObj(number -> describe(disks, number))
                    .toList();
        }

        private Map<String, Object> describe(List<TierTransferStats> disks, int number) {
            TierTransferStats disk = disks.get(number);
            Map<String, Object> all = new LinkedHashMap<>();
            all.put("number", number);
            all.put("name", disk.name());
            all.put("state", disk.state().name().toLowerCase(Locale.ROOT));
            all.put("cause", disk.cause());
            all.put("opened", disk.opened());
            GpuConfig gpu = gpuNamed(disk.name());
            ResizableTier tier = gpu == null ? null : gpus.get(gpu);
            if (gpu != null && tier != null) {
                all.put("device", gpu.device());
                all.put("bytes", tier.bytes());
                all.put("maxBytes", gpu.maxBytes());
            }
            return all;
        }
    }

    /// The page `/v1/stats`: one JSON object, for administrators of the whole server, and for each tenant of its
    /// own part.
    static final class StatsEndpoint implements HttpEndpoint {

        private static final String PATH = "/v1/stats";

        private final ServedStore store;
        private final FrontEnds fronts;
        private final Viewer.Rules rules;

        StatsEndpoint(ServedStore store, FrontEnds fronts, Viewer.Rules rules) {
            this.store = store;
            this.fronts = fronts;
            this.rules = rules;
        }

        @Override
        public List<String> paths() {
            return List.of(PATH);
        }

        @Override
        public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
            Supplier<String> body = rules.viewer(tenant).administrator() ? this::ofServer : () -> ofTenant(tenant);
            return path.equals(PATH)
                    ? HttpResponder.slowPageHandler(request, TextEndpoint.of("application/json", body))
                    : null;
        }

        private record Clients(int open, long accepted, Map<String, Long> closed) {}

        private record Stats(
                String version,
                CacheStats.Memory host,
                CacheStats.Records records,
                CacheStats.Puts puts,
                CacheStats.Removals removals,
                LruFallback.Report policy,
                HintStats hints,
                LruHitRatioEstimator.Report memoryCurve,
                TraceCapture.@Nullable Stats trace,
                long openViews,
                List<TierTransferStats> disks,
                DiskTierStats offload,
                PrefetchStats prefetched,
                long cheaperComputed,
                boolean recovering,
                Map<String, KeyspaceStats> tenants,
                Clients connections,
                @Nullable EndpointStats transport,
                Map<String, RequestLatencies.Summary> latency,
                List<NamespaceLine> namespaces) {}

        /// @param name model or collection
        private record NamespaceLine(
                String name,
                String tenant,
                long blocksAsked,
                long blocksFound,
                long blocksArrived,
                long blocksFromDevice,
                long objectsAsked,
                long objectsFound,
                long live,
                long liveBytes) {

            static NamespaceLine of(NamespaceStats stats) {
                return new NamespaceLine(
                        stats.namespace().model(),
                        stats.namespace().owner(),
                        stats.blocksRequested(),
                        stats.blocksFound(),
                        stats.blocksLoaded(),
                        stats.blocksFromDevice(),
                        stats.objectsRequested(),
                        stats.objectsFound(),
                        stats.live(),
                        stats.liveBytes());
            }
        }

        private record TenantStats(
                String version, Map<String, KeyspaceStats> tenants, List<NamespaceLine> namespaces) {}

        /// What a tenant may know: the part of it that is its own.
        private String ofTenant(String tenant) {
            return write(new TenantStats(
                    OperatorPages.version(),
                    only(tenant, keyspaces()),
                    store.cache().stats().namespaces().stream()
                            .map(NamespaceLine::of)
                            .filter(line -> line.tenant.equals(tenant))
                            .toList()));
        }

        private static <V> Map<String, V> only(String tenant, Map<String, V> all) {
            Map<String, V> own = new TreeMap<>(all);
            own.keySet().retainAll(Set.of(tenant));
            return own;
        }

        private static String write(Object stats) {
            return JsonMapper.builder().build().writeValueAsString(stats) + "\n";
        }

        private String ofServer() {
            TieredKvCache cache = store.cache();
            RemoteEndpoint remote = fronts.remote();
            CacheStats stats = cache.stats();
            return write(new Stats(
                    OperatorPages.version(),
                    stats.host(),
                    stats.records(),
                    stats.puts(),
                    stats.removals(),
                    cache.lruFallbackReport(),
                    cache.hintStats(),
                    store.missRatioCurve(),
                    store.traceStats(),
                    stats.openTables(),
                    cache.diskStats(),
                    cache.offloadStats(),
                    cache.prefetchStats(),
                    cache.blocksLeftOnDisk(),
                    cache.isRecovering(),
                    keyspaces(),
                    clients(),
                    remote == null ? null : remote.stats(),
                    fronts.latencies().summaries(),
                    stats.namespaces().stream().map(NamespaceLine::of).toList()));
        }

        private Map<String, KeyspaceStats> keyspaces() {
            Map<String, KeyspaceStats> stats = new TreeMap<>();
            store.tenants().keyspaces().forEach((tenant, keyspace) -> stats.put(tenant, keyspace.stats()));
            return stats;
        }

        private Clients clients() {
            ConnectionRegistry connections = fronts.connections();
            Map<String, Long> closed = new TreeMap<>();
            for (CloseReason reason : CloseReason.values()) {
                closed.put(reason.name().toLowerCase(Locale.ROOT), connections.closedCount(reason));
            }
            return new Clients(connections.openCount(), connections.acceptedCount(), closed);
        }
    }
}
