package io.kvcache.server.console;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.stats.PrefixLevel;
import io.kvcache.core.stats.PrefixLevel.PrefixNode;
import io.kvcache.server.config.ConfigReader.SettingInForce;
import io.kvcache.server.console.LoadTotals.LoadSample;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.OperatorResources;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.kvcache.server.keyspace.ChunkTree;
import io.kvcache.server.keyspace.ChunkTree.ChunkModel;
import io.kvcache.server.keyspace.ChunkTree.ChunkNode;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SlowRequestLog.SlowRequest;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.kvcache.transport.cluster.BlockGroup;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The endpoints behind the console, useful by curl: what the server knows of its load, as JSON.
///
/// A tenant is shown what is its own; an administrator everything, and alone what cannot be told apart by
/// tenant.
///
/// **Threads.** Any.
public final class ConsoleEndpoint implements HttpEndpoint {

    private static final String PREFIXES = "/v1/prefixes";
    private static final String PREFIX = PREFIXES + "/";
    private static final int MAX_MINUTES = LoadHistory.KEPT_SECONDS / 60;
    private static final int MAX_NODES = 1000;
    private static final int DEFAULT_NODES = 50;
    private static final int DEFAULT_MISSES = 200;
    private static final int MAX_MISSES = 1000;
    private static final int MAX_CONNECTIONS = 1000;
    private static final Pattern KEY = Pattern.compile("[0-9a-f]{32}");
    private static final Pattern CHUNK = Pattern.compile("[0-9a-fA-F]{8,128}");

    /// Smallest difference of two hit ratios.
    private static final double RATIO_STEP = 1e-6;

    private final ConsoleParts parts;
    private final Viewer.Rules rules;
    private final Map<String, Function<Query, HttpRequestHandler>> pages = new LinkedHashMap<>();

    /// What the endpoints of all listeners share.
    ///
    /// @param settings in force; empty while the server starts
    /// @param scans look at every record
    public record ConsoleParts(
            ConsoleSources sources,
            LoadHistory history,
            LiveFeed live,
            Supplier<List<SettingInForce>> settings,
            PrefixScans scans) {

        public ConsoleParts(
                ConsoleSources sources, LoadHistory history, LiveFeed live, Supplier<List<SettingInForce>> settings) {
            this(sources, history, live, settings, new PrefixScans(sources.clock()));
        }
    }

    /// @param rules of the listener
    public ConsoleEndpoint(ConsoleParts parts, Viewer.Rules rules) {
        this.parts = parts;
        this.rules = rules;
        pages.put("/v1/console", query -> json(() -> overview(query.viewer)));
        pages.put("/v1/history", this::history);
        pages.put("/v1/live", query -> parts.live.follow(query.viewer, query.scope()));
        pages.put("/v1/misses", query -> json(misses(query)));
        pages.put(PREFIXES, this::prefixes);
        pages.put("/v1/requests", query -> json(() -> requests(query.viewer)));
        pages.put("/v1/whatif", query -> {
            int minutes = query.number("minutes", 60, 1, MAX_MINUTES);
            return forAdministrator(query.viewer, () -> whatIf(minutes));
        });
        pages.put(
                "/v1/settings", query -> forAdministrator(query.viewer, () -> new SettingsJson(parts.settings.get())));
    }

    @Override
    public List<String> paths() {
        return List.copyOf(pages.keySet());
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        Function<Query, HttpRequestHandler> page = pages.get(path);
        boolean drop = path.startsWith(PREFIX);
        if (page == null && !drop) {
            return null;
        }
        String allowed = drop ? "DELETE" : "GET";
        if (!request.method().name().equals(allowed)) {
            return HttpResponder.methodNotAllowed(request, allowed);
        }
        try {
            Query query = new Query(
                    rules.viewer(tenant), parts.sources.keyspaces().keySet(), new QueryStringDecoder(request.uri()));
            return page == null ? drop(query.viewer, path.substring(PREFIX.length())) : page.apply(query);
        } catch (IllegalArgumentException mistake) {
            return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())).toHandler();
        } catch (ForbiddenException forbidden) {
            return Viewer.administratorsOnly(String.valueOf(forbidden.getMessage()));
        }
    }

    /// The client asks for what another tenant owns.
    private static final class ForbiddenException extends RuntimeException {

        private static final long serialVersionUID = 1;

        ForbiddenException(String message) {
            super(message);
        }
    }

    /// A request's parameters.
    private record Query(Viewer viewer, Set<String> tenants, QueryStringDecoder decoder) {

        @Nullable
        String text(String name) {
            List<String> given = decoder.parameters().get(name);
            return given == null || given.getFirst().isEmpty() ? null : given.getFirst();
        }

        int number(String name, int defaultValue, int least, int most) {
            String text = text(name);
            if (text == null) {
                return defaultValue;
            }
            try {
                int number = Integer.parseInt(text);
                if (number >= least && number <= most) {
                    return number;
                }
            } catch (NumberFormatException notOne) {
                // Said below.
            }
            throw new IllegalArgumentException(name + " is '" + text + "'; it takes a whole number, " + least + " to "
                    + most + (name.equals("namespace") ? ", the id of one of the namespaces in /v1/prefixes" : ""));
        }

        /// The tenant that is asked about, which is a viewer's own unless it is an administrator; null for
        /// all.
        @Nullable
        String scope() {
            String asked = text("tenant");
            if (asked != null && viewer.administrator() && !tenants.contains(asked)) {
                throw new IllegalArgumentException(
                        "tenant is '" + asked + "'; it takes " + String.join(", ", new TreeSet<>(tenants)));
            }
            if (asked != null && !viewer.sees(asked)) {
                throw new ForbiddenException("tenant " + asked + " is not yours, which is " + viewer.tenant());
            }
            return asked == null && !viewer.administrator() ? viewer.tenant() : asked;
        }
    }

    private static HttpRequestHandler json(Supplier<Object> value) {
        return (HttpRequestHandler.BodylessHandler) out -> out.sendJson(HttpResponseStatus.OK, value.get());
    }

    private static HttpRequestHandler forAdministrator(Viewer viewer, Supplier<Object> value) {
        return viewer.administrator()
                ? json(value)
                : Viewer.administratorsOnly("this page tells of all tenants, and tenant " + viewer.tenant()
                        + " is not an administrator here");
    }

    private record OverviewJson(
            String version,
            String tenant,
            boolean administrator,
            boolean mayChange,
            String startedAt,
            String now,
            String policy,
            boolean followsLru,
            boolean recovering,
            boolean cluster,
            List<String> tenants,
            @Nullable Double prefillTokensPerSecond,
            int historyIntervalSeconds,
            int historyKeptSeconds,
            int disks) {}

    private OverviewJson overview(Viewer viewer) {
        ConsoleSources sources = parts.sources;
        return new OverviewJson(
                sources.version(),
                viewer.tenant(),
                viewer.administrator(),
                viewer.mayChange(),
                parts.history.since().toString(),
                sources.wall().instant().toString(),
                sources.policy(),
                sources.cache().lruFallbackReport().followsLru(),
                sources.cache().isRecovering(),
                sources.inCluster(),
                sources.keyspaces().keySet().stream()
                        .filter(viewer::sees)
                        .sorted()
                        .toList(),
                sources.prefillTokensPerSecond(),
                LoadHistory.SERVER_SECONDS,
                LoadHistory.KEPT_SECONDS,
                sources.cache().diskStats().size());
    }

    private HttpRequestHandler history(Query query) {
        int minutes = query.number("minutes", 60, 1, MAX_MINUTES);
        String scope = query.scope();
        return json(() -> parts.history.history(scope, minutes));
    }

    /// @param chunksFound those of its sequence that come before it; null where that is not known
    private record MissJson(
            @JsonUnwrapped MissLog.Miss miss, @Nullable Integer chunksFound) {}

    private MissJson missJson(MissLog.Miss miss) {
        // A server of a cluster is asked for its own chunks of a sequence alone.
        boolean known = miss.kind() == MissLog.Kind.OBJECT && !parts.sources.inCluster();
        Keyspace keyspace = known ? parts.sources.keyspaces().get(miss.tenant()) : null;
        int before = keyspace == null ? -1 : keyspace.chunksBefore(miss.key().getBytes(StandardCharsets.UTF_8));
        return new MissJson(miss, before < 0 ? null : before);
    }

    /// @param chunkTokens tokens of one of LMCache's chunks
    private record MissesJson(
            Map<MissLog.Reason, Long> reasons, int kept, long notKept, int chunkTokens, List<MissJson> recent) {}

    private Supplier<Object> misses(Query query) {
        int limit = query.number("limit", DEFAULT_MISSES, 1, MAX_MISSES);
        String scope = query.scope();
        String reason = query.text("reason");
        List<String> reasons = Arrays.stream(MissLog.Reason.values())
                .map(MissLog.Reason::label)
                .toList();
        if (reason != null && !reasons.contains(reason)) {
            throw new IllegalArgumentException("reason is '" + reason + "'; it takes " + String.join(", ", reasons));
        }
        return () -> {
            ConsoleSources sources = parts.sources;
            LoadTotals totals = scope == null
                    ? LoadTotals.ofServer(sources, sources.cache().stats())
                    : LoadTotals.ofTenant(sources, sources.cache().stats(), scope);
            return new MissesJson(
                    LoadTotals.missesBetween(Map.of(), totals.missReasons()),
                    MissLog.KEPT,
                    sources.misses().notKeptCount(scope),
                    sources.chunkTokens(),
                    sources
                            .misses()
                            .recent(
                                    scope,
                                    miss -> reason == null
                                            || miss.reason().label().equals(reason),
                                    limit)
                            .stream()
                            .map(this::missJson)
                            .toList());
        };
    }

    /// @param groups whether its blocks are groups of chains that a cluster has spread over its servers
    /// @param clients programs and versions of the transport's clients that use it now, as they say
    private record NamespaceJson(
            int id,
            String name,
            String tenant,
            @Nullable Integer blockTokens,
            @Nullable Long blockBytes,
            long live,
            long liveBytes,
            boolean groups,
            Set<String> clients) {

        /// Returns whether a namespace is empty, and another one has its name: it was registered anew with
        /// another shape, or a cluster's groups have its blocks. A store forgets no namespace.
        static boolean isReplaced(int id, List<NamespaceStats> all) {
            NamespaceStats own = all.get(id);
            return own.live() == 0
                    && IntStream.range(0, all.size())
                            .filter(other -> other > id || all.get(other).live() > 0)
                            .filter(other -> other != id)
                            .mapToObj(other -> all.get(other).namespace())
                            .anyMatch(other -> other.model()
                                            .equals(own.namespace().model())
                                    && other.owner().equals(own.namespace().owner())
                                    && other.parts().isEmpty()
                                            == own.namespace().parts().isEmpty());
        }

        static NamespaceJson of(int id, NamespaceStats stats, Map<Namespace, Set<String>> clients) {
            Namespace namespace = stats.namespace();
            boolean blocks = !namespace.parts().isEmpty();
            return new NamespaceJson(
                    id,
                    namespace.model(),
                    namespace.owner(),
                    blocks ? namespace.blockTokens() : null,
                    blocks ? namespace.blockBytes() : null,
                    stats.live(),
                    stats.liveBytes(),
                    BlockGroup.isGroups(namespace),
                    clients.getOrDefault(namespace, Set.of()));
        }
    }

    private record NodeJson(
            String key,
            int namespace,
            @Nullable Integer depth,
            int run,
            long blocks,
            long bytes,
            long memoryBlocks,
            long diskBlocks,
            long deviceBlocks,
            int branches,
            @Nullable Integer uses,
            @Nullable Long lastUseSecondsAgo) {}

    private record ChunkModelJson(
            int namespace,
            String model,
            String worker,
            @JsonUnwrapped ChunkModel counts) {}

    /// LMCache's chunks.
    ///
    /// @param models empty where those of one are asked for
    /// @param otherValues values with keys of another form
    /// @param unreadValues values from before the start, whose keys are not known yet
    private record ChunksJson(int chunkTokens, List<ChunkModelJson> models, long otherValues, long unreadValues) {}

    private record PrefixesJson(
            String at,
            long scanMillis,
            long blocks,
            long bytes,
            List<NamespaceJson> namespaces,
            List<NodeJson> nodes,
            long more,
            ChunksJson chunks) {}

    /// What is asked of `/v1/prefixes`.
    ///
    /// @param tenant null for all
    /// @param namespace -1 for all
    private record PrefixQuestion(@Nullable String tenant, int namespace, Below below, int limit) {}

    private HttpRequestHandler prefixes(Query query) {
        int limit = query.number("limit", DEFAULT_NODES, 1, MAX_NODES);
        String scope = query.scope();
        String under = query.text("under");
        String stem = query.text("chunks");
        if (under != null && stem != null && !CHUNK.matcher(under).matches()) {
            throw new IllegalArgumentException(
                    "under is '" + under + "'; it takes the digest of a chunk, in hexadecimal");
        }
        Below below = new Below(under == null || stem != null ? null : parseKey("under", under), stem, under);
        int known = parts.sources.cache().stats().namespaces().size();
        int only = query.number("namespace", -1, 0, known - 1);
        PrefixQuestion question = new PrefixQuestion(scope, only, below, limit);
        return (HttpRequestHandler.BodylessHandler) out -> {
            CompletableFuture<Object> answer =
                    parts.scans.ask(query.viewer, question, () -> scan(scope, only, below, limit));
            if (answer == null) {
                out.sendProblem(ProblemDetails.withType(
                        HttpResponseStatus.SERVICE_UNAVAILABLE,
                        "busy",
                        "a scan for this tenant runs already, or as many as may run at a time; try again"));
                return;
            }
            answer.whenComplete((level, failed) -> out.sendLater(
                    () -> {
                        if (failed == null) {
                            out.sendJson(HttpResponseStatus.OK, level);
                        } else {
                            out.sendProblem(new ProblemDetails(
                                    HttpResponseStatus.INTERNAL_SERVER_ERROR,
                                    "looking at the store failed, a bug; the server's log has the error"));
                        }
                    },
                    () -> {}));
        };
    }

    /// The level that is asked for.
    ///
    /// @param block whose run is looked below; null for the first level, and for chunks
    /// @param stem of the model whose chunks are asked for; null for blocks
    /// @param chunk digest of the one whose run is looked below; null for the first level
    private record Below(
            @Nullable BlockKey block,
            @Nullable String stem,
            @Nullable String chunk) {}

    private PrefixesJson scan(@Nullable String tenant, int only, Below below, int limit) {
        ConsoleSources sources = parts.sources;
        long start = sources.clock().nanos();
        List<NamespaceStats> all = sources.cache().stats().namespaces();
        IntPredicate wanted = id -> id < all.size()
                && (only < 0 || only == id)
                && (tenant == null || all.get(id).namespace().owner().equals(tenant));
        PrefixLevel level = below.stem == null
                ? sources.cache().prefixes(wanted, below.block, limit)
                : new PrefixLevel(List.of(), 0, 0, 0);
        Map<Integer, ChunkTree> trees = below.block == null ? chunkTrees(all, wanted, below.stem) : Map.of();
        List<NodeJson> chunks = new ArrayList<>();
        if (below.stem != null) {
            trees.forEach((id, tree) -> tree.nodes(below.chunk).forEach(node -> chunks.add(chunkJson(id, node))));
        }
        List<NamespaceJson> namespaces = new ArrayList<>();
        Map<Namespace, Set<String>> clients = sources.clients().get();
        for (int id = 0; id < all.size(); id++) {
            boolean asked = tenant == null || all.get(id).namespace().owner().equals(tenant);
            if (asked && !NamespaceJson.isReplaced(id, all)) {
                namespaces.add(NamespaceJson.of(id, all.get(id), clients));
            }
        }
        return new PrefixesJson(
                sources.wall().instant().toString(),
                TimeUnit.NANOSECONDS.toMillis(sources.clock().nanos() - start),
                level.blocks() + chunks.stream().mapToLong(NodeJson::blocks).sum(),
                level.bytes() + chunks.stream().mapToLong(NodeJson::bytes).sum(),
                namespaces,
                Stream.concat(level.nodes().stream().map(node -> nodeJson(node, all)), chunks.stream())
                        .limit(limit)
                        .toList(),
                level.more() + Math.max(0, chunks.size() - limit),
                chunksJson(trees));
    }

    /// The chunks of the tenants' values, by the number of the namespace.
    private Map<Integer, ChunkTree> chunkTrees(List<NamespaceStats> all, IntPredicate wanted, @Nullable String stem) {
        Map<Integer, ChunkTree> trees = new LinkedHashMap<>();
        for (int id = 0; id < all.size(); id++) {
            Namespace namespace = all.get(id).namespace();
            Keyspace keyspace = parts.sources.keyspaces().get(namespace.owner());
            if (wanted.test(id) && keyspace != null && keyspace.namespace().equals(namespace)) {
                trees.put(id, keyspace.chunkTree(stem));
            }
        }
        parts.sources
                .cache()
                .visitObjects(
                        trees::containsKey,
                        object -> Objects.requireNonNull(trees.get(object.namespaceId()))
                                .add(object));
        return trees;
    }

    private ChunksJson chunksJson(Map<Integer, ChunkTree> trees) {
        List<ChunkModelJson> models = new ArrayList<>();
        trees.forEach((id, tree) -> tree.models()
                .forEach(model -> models.add(new ChunkModelJson(id, model.model(), model.worker(), model))));
        return new ChunksJson(
                parts.sources.chunkTokens(),
                models,
                trees.values().stream().mapToLong(ChunkTree::otherValues).sum(),
                trees.values().stream().mapToLong(ChunkTree::unreadValues).sum());
    }

    private NodeJson chunkJson(int namespace, ChunkNode node) {
        return new NodeJson(
                node.digest(),
                namespace,
                node.depth(),
                node.run(),
                node.chunks(),
                node.bytes(),
                node.memoryChunks(),
                node.diskChunks(),
                0, // values go to disks alone
                node.branches(),
                node.uses() < 0 ? null : node.uses(),
                parts.history.secondsSince(node.lastUse()));
    }

    private NodeJson nodeJson(PrefixNode node, List<NamespaceStats> all) {
        // A server does not know where in its chain a cluster's group stands.
        boolean ofGroup = BlockGroup.isGroups(all.get(node.namespaceId()).namespace());
        return new NodeJson(
                node.key().toString(),
                node.namespaceId(),
                ofGroup ? null : node.depth(),
                node.run(),
                node.blocks(),
                node.bytes(),
                node.memoryBlocks(),
                node.diskBlocks(),
                node.deviceBlocks(),
                node.branches(),
                node.uses() < 0 ? null : node.uses(),
                parts.history.secondsSince(node.lastUse()));
    }

    private static BlockKey parseKey(String name, String text) {
        if (!KEY.matcher(text).matches()) {
            throw new IllegalArgumentException(
                    name + " is '" + text + "'; it takes the 32 hexadecimal digits of a block's key");
        }
        return new BlockKey(Long.parseUnsignedLong(text, 0, 16, 16), Long.parseUnsignedLong(text, 16, 32, 16));
    }

    /// @param cluster whether the other servers of the cluster forget it too
    private record DroppedJson(long dropped, boolean cluster) {}

    /// Forgets a block and all below it: of a cluster's groups at all servers.
    ///
    /// @param path number of the namespace and key, with a slash between them
    private HttpRequestHandler drop(Viewer viewer, String path) {
        int slash = path.indexOf('/');
        String number = path.substring(0, Math.max(0, slash));
        if (!number.matches("\\d{1,5}")) {
            throw new IllegalArgumentException("the namespace is '" + number
                    + "'; it takes the id of one of the namespaces in /v1/prefixes, as" + " in /v1/prefixes/3/KEY");
        }
        BlockKey key = parseKey("the key", path.substring(slash + 1));
        List<NamespaceStats> all = parts.sources.cache().stats().namespaces();
        int id = Integer.parseInt(number);
        if (id >= all.size() || !viewer.sees(all.get(id).namespace().owner())) {
            return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "you have no namespace " + id).toHandler();
        }
        Namespace namespace = all.get(id).namespace();
        if (!viewer.mayChange()) {
            return ProblemDetails.withType(
                            HttpResponseStatus.FORBIDDEN, "read-only", "clients of this listener may change nothing")
                    .toHandler();
        }
        ConsoleSources.ClusterDrop everywhere = BlockGroup.isGroups(namespace) ? parts.sources.clusterDrop() : null;
        return (HttpRequestHandler.BodylessHandler) out -> {
            if (everywhere == null) {
                sendDropped(out, parts.sources.cache().dropBlock(namespace, key), false);
            } else {
                Thread.ofVirtual().start(() -> dropEverywhere(out, everywhere, namespace, key));
            }
        };
    }

    private void dropEverywhere(
            HttpResponder out, ConsoleSources.ClusterDrop everywhere, Namespace groups, BlockKey key) {
        try {
            long dropped = everywhere.drop(groups, key);
            out.sendLater(() -> sendDropped(out, dropped, true), () -> {});
        } catch (UncheckedIOException | IllegalStateException failed) {
            ProblemDetails problem = new ProblemDetails(
                    HttpResponseStatus.INTERNAL_SERVER_ERROR,
                    failed.getMessage() + ", so it may be back after a restart, and other servers may not hear of it");
            out.sendLater(() -> out.sendProblem(problem), () -> {});
        }
    }

    private void sendDropped(HttpResponder out, long dropped, boolean cluster) {
        parts.scans.onChanged();
        out.sendJson(HttpResponseStatus.OK, new DroppedJson(dropped, cluster));
    }

    private record ConnectionJson(
            long id,
            String address,
            String name,
            String tenant,
            String protocol,
            long ageSeconds,
            long idleSeconds,
            boolean busy,
            String request,
            long requests,
            long unreadBytes) {

        static ConnectionJson of(Connection connection, long now) {
            ProtocolKind protocol = connection.protocol();
            return new ConnectionJson(
                    connection.id(),
                    connection.address(),
                    connection.clientInfo().name(),
                    connection.clientInfo().tenant(),
                    protocol == null ? "" : protocol.name().toLowerCase(Locale.ROOT),
                    TimeUnit.NANOSECONDS.toSeconds(now - connection.acceptedNanos()),
                    TimeUnit.NANOSECONDS.toSeconds(now - connection.lastReadNanos()),
                    connection.isInRequest(),
                    connection.lastRequest(),
                    connection.requestCount(),
                    connection.unreadBytes());
        }
    }

    private record RequestsJson(
            @Nullable Long slowMillis,
            List<SlowRequest> slow,
            @Nullable Map<String, RequestLatencies.Summary> latency,
            int open,
            int operators,
            int shown,
            List<ConnectionJson> connections) {}

    private RequestsJson requests(Viewer viewer) {
        ConsoleSources sources = parts.sources;
        Duration threshold = sources.slowRequests().threshold();
        long now = sources.clock().nanos();
        List<Connection> seen = sources.connections().openConnections().stream()
                .filter(each -> viewer.sees(each.clientInfo().tenant()))
                .toList();
        List<ConnectionJson> shown = seen.stream()
                .filter(each -> !OperatorResources.isRequest(each.lastRequest()))
                .limit(MAX_CONNECTIONS)
                .map(each -> ConnectionJson.of(each, now))
                .toList();
        return new RequestsJson(
                threshold.isZero() ? null : threshold.toMillis(),
                sources.slowRequests().recent().stream()
                        .filter(each -> viewer.sees(each.tenant()) && !OperatorResources.isRequest(each.request()))
                        .toList(),
                viewer.administrator() ? latencies() : null,
                seen.size(),
                (int) seen.stream()
                        .filter(each -> OperatorResources.isRequest(each.lastRequest()))
                        .count(),
                shown.size(),
                shown);
    }

    private Map<String, RequestLatencies.Summary> latencies() {
        Map<String, RequestLatencies.Summary> latencies =
                new TreeMap<>(parts.sources.latencies().summaries());
        latencies.keySet().removeIf(OperatorResources::isRequest);
        return latencies;
    }

    /// @param hitRatio what would be found, in memory or on disk
    /// @param memoryHitRatio what would be found in memory
    record SizeJson(double factor, long bytes, double hitRatio, double memoryHitRatio) {}

    record PolicyJson(String name, @JsonUnwrapped LruFallback.Report report) {}

    /// @param sizes estimated, none without lookups; the ratios of the size that there is are those of the history
    /// @param lookups of the last minutes
    /// @param uses that the estimate is about
    /// @param tokensSavedPerSecond in the last minutes
    record WhatIfJson(
            List<SizeJson> sizes,
            long lookups,
            long uses,
            double sampledShare,
            long dropped,
            @Nullable PolicyJson policy,
            long capacityBytes,
            long diskCapacityBytes,
            @Nullable Double prefillTokensPerSecond,
            @Nullable Double tokensSavedPerSecond) {}

    WhatIfJson whatIf(int minutes) {
        ConsoleSources sources = parts.sources;
        LruHitRatioEstimator.Report curve = sources.curve().get();
        LruFallback.Report policy = sources.cache().lruFallbackReport();
        List<LoadSample> samples = parts.history.history(null, minutes).samples();
        double seconds = samples.stream().mapToDouble(LoadSample::seconds).sum();
        long tokens = samples.stream().mapToLong(LoadSample::tokensSaved).sum();
        long inMemory = samples.stream().mapToLong(LoadSample::memoryHits).sum();
        long hits = inMemory
                + samples.stream()
                        .mapToLong(sample -> sample.diskHits() + sample.deviceHits())
                        .sum();
        long lookups = hits + samples.stream().mapToLong(LoadSample::misses).sum();
        return new WhatIfJson(
                curve.uses() == 0 ? List.of() : sizes(curve, lookups, hits, inMemory),
                lookups,
                curve.uses(),
                curve.sampledShare(),
                curve.dropped(),
                policy.sampledUses() == 0 ? null : new PolicyJson(sources.policy(), policy),
                sources.cache().stats().host().capacityBytes(),
                sources.cache().diskStats().stream()
                        .mapToLong(each -> each.tier().capacityBytes())
                        .sum(),
                sources.prefillTokensPerSecond(),
                seconds == 0 ? null : tokens / seconds);
    }

    private static List<SizeJson> sizes(LruHitRatioEstimator.Report curve, long lookups, long hits, long inMemory) {
        LruHitRatioEstimator.Size today = curve.sizes().stream()
                .filter(size -> size.factor() == 1)
                .findFirst()
                .orElseThrow();
        if (lookups == 0) {
            return List.of();
        }
        return curve.sizes().stream()
                .map(size -> {
                    double all =
                            scaled((double) hits / lookups, today.lruHitRatioWithDisks(), size.lruHitRatioWithDisks());
                    double memory = scaled((double) inMemory / lookups, today.lruHitRatio(), size.lruHitRatio());
                    return new SizeJson(size.factor(), size.bytes(), all, Math.min(memory, all));
                })
                .toList();
    }

    /// Returns the ratio that another size of memory would have had.
    ///
    /// The estimate is of LRU, and counts what was found or put; a look-up that found nothing may be followed by
    /// no put, or by many. So the counted hits grow as the estimated hits do, and the misses shrink as those do.
    ///
    /// @param measured ratio
    /// @param today estimated for the memory that there is
    /// @param other estimated for the other size
    static double scaled(double measured, double today, double other) {
        double now = Math.clamp(measured, RATIO_STEP, 1 - RATIO_STEP);
        double from = Math.clamp(today, RATIO_STEP, 1 - RATIO_STEP);
        double to = Math.clamp(other, RATIO_STEP, 1 - RATIO_STEP);
        double hits = now * to / from;
        double misses = (1 - now) * (1 - to) / (1 - from);
        return to == from ? measured : hits / (hits + misses);
    }

    private record SettingsJson(List<SettingInForce> settings) {}
}
