package io.kvcache.server.console;

import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.store.PrefixScan.PrefixLevel;
import io.kvcache.core.store.PrefixScan.PrefixNode;
import io.kvcache.server.config.SettingInForce;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SlowRequestLog.SlowRequest;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import java.util.regex.Pattern;
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

    /// Scans of the whole store at one time, by all clients.
    private static final int MAX_SCANS = 2;

    private final ConsoleParts parts;
    private final Viewer.Rules rules;
    private final Map<String, Function<Query, HttpRequestHandler>> pages = new LinkedHashMap<>();

    /// What the endpoints of all listeners share.
    ///
    /// @param settings in force; empty while the server starts
    /// @param scans permits for looking at every record
    public record ConsoleParts(
            ConsoleSources sources,
            LoadHistory history,
            LiveFeed live,
            Supplier<List<SettingInForce>> settings,
            Semaphore scans) {

        public ConsoleParts(
                ConsoleSources sources, LoadHistory history, LiveFeed live, Supplier<List<SettingInForce>> settings) {
            this(sources, history, live, settings, new Semaphore(MAX_SCANS));
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
        pages.put("/v1/whatif", query -> forAdministrator(query.viewer, this::whatIf));
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

    private record MissJson(
            String at,
            String tenant,
            String kind,
            String namespace,
            String key,
            int requested,
            int found,
            String reason,
            @Nullable Long leftSecondsAgo,
            @Nullable String orderedBy) {

        static MissJson of(MissLog.Miss miss) {
            return new MissJson(
                    Instant.ofEpochMilli(miss.atMillis()).toString(),
                    miss.tenant(),
                    miss.blocks() ? "blocks" : "object",
                    miss.namespace(),
                    miss.key(),
                    miss.requested(),
                    miss.found(),
                    miss.reason().label(),
                    miss.leftSecondsAgo() < 0 ? null : miss.leftSecondsAgo(),
                    miss.orderedBy());
        }
    }

    private record MissesJson(MissCounts reasons, int kept, long notKept, List<MissJson> recent) {}

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
                    MissCounts.between(Map.of(), totals.missReasons()),
                    MissLog.KEPT,
                    sources.misses().notKeptCount(scope),
                    sources
                            .misses()
                            .recent(
                                    scope,
                                    miss -> reason == null
                                            || miss.reason().label().equals(reason),
                                    limit)
                            .stream()
                            .map(MissJson::of)
                            .toList());
        };
    }

    private record NamespaceJson(
            int id,
            String name,
            String tenant,
            @Nullable Integer blockTokens,
            @Nullable Long blockBytes,
            long live,
            long liveBytes) {

        static NamespaceJson of(int id, NamespaceStats stats) {
            Namespace namespace = stats.namespace();
            boolean blocks = !namespace.parts().isEmpty();
            return new NamespaceJson(
                    id,
                    namespace.model(),
                    namespace.tenant(),
                    blocks ? namespace.blockTokens() : null,
                    blocks ? namespace.parts().getFirst().bytes() : null,
                    stats.live(),
                    stats.liveBytes());
        }
    }

    private record NodeJson(
            String key,
            int namespace,
            int depth,
            int run,
            long blocks,
            long bytes,
            long memoryBlocks,
            long diskBlocks,
            int branches,
            @Nullable Integer uses,
            @Nullable Long lastUseSecondsAgo) {}

    private record PrefixesJson(
            String at,
            long scanMillis,
            long blocks,
            long bytes,
            List<NamespaceJson> namespaces,
            List<NodeJson> nodes,
            long more) {}

    /// On a thread of its own, as looking at every record takes a while.
    private HttpRequestHandler prefixes(Query query) {
        int limit = query.number("limit", DEFAULT_NODES, 1, MAX_NODES);
        String scope = query.scope();
        String under = query.text("under");
        BlockKey above = under == null ? null : parseKey("under", under);
        int known = parts.sources.cache().stats().namespaces().size();
        int only = query.number("namespace", -1, 0, known - 1);
        return (HttpRequestHandler.BodylessHandler) out -> {
            if (!parts.scans.tryAcquire()) {
                out.sendProblem(ProblemDetails.withType(
                        HttpResponseStatus.SERVICE_UNAVAILABLE,
                        "busy",
                        "others look at the whole store now; try again"));
                return;
            }
            Thread.ofVirtual().name("kvcache-prefixes").start(() -> {
                try {
                    PrefixesJson level = scan(scope, only, above, limit);
                    out.sendLater(() -> out.sendJson(HttpResponseStatus.OK, level), () -> {});
                } finally {
                    parts.scans.release();
                }
            });
        };
    }

    private PrefixesJson scan(@Nullable String tenant, int only, @Nullable BlockKey above, int limit) {
        ConsoleSources sources = parts.sources;
        long start = sources.clock().nanos();
        List<NamespaceStats> all = sources.cache().stats().namespaces();
        IntPredicate wanted = id -> id < all.size()
                && (only < 0 || only == id)
                && (tenant == null || all.get(id).namespace().tenant().equals(tenant));
        PrefixLevel level = sources.cache().prefixes(wanted, above, limit);
        List<NamespaceJson> namespaces = new ArrayList<>();
        for (int id = 0; id < all.size(); id++) {
            if (tenant == null || all.get(id).namespace().tenant().equals(tenant)) {
                namespaces.add(NamespaceJson.of(id, all.get(id)));
            }
        }
        return new PrefixesJson(
                sources.wall().instant().toString(),
                TimeUnit.NANOSECONDS.toMillis(sources.clock().nanos() - start),
                level.blocks(),
                level.bytes(),
                namespaces,
                level.nodes().stream().map(this::nodeJson).toList(),
                level.more());
    }

    private NodeJson nodeJson(PrefixNode node) {
        return new NodeJson(
                node.key().toString(),
                node.namespaceId(),
                node.depth(),
                node.run(),
                node.blocks(),
                node.bytes(),
                node.memoryBlocks(),
                node.diskBlocks(),
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

    private record DroppedJson(int dropped) {}

    /// Forgets a block and all below it.
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
        if (id >= all.size() || !viewer.sees(all.get(id).namespace().tenant())) {
            return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "you have no namespace " + id).toHandler();
        }
        Namespace namespace = all.get(id).namespace();
        if (!viewer.mayChange()) {
            return ProblemDetails.withType(
                            HttpResponseStatus.FORBIDDEN, "read-only", "clients of this listener may change nothing")
                    .toHandler();
        }
        return (HttpRequestHandler.BodylessHandler) out -> out.sendJson(
                HttpResponseStatus.OK,
                new DroppedJson(parts.sources.cache().blocks(namespace).drop(key)));
    }

    private record SlowJson(
            String at, String request, String tenant, String address, double millis, double waitedMillis, long bytes) {

        static SlowJson of(SlowRequest request) {
            return new SlowJson(
                    request.at().toString(),
                    request.request(),
                    request.tenant(),
                    request.address(),
                    request.nanos() / 1e6,
                    request.waitedNanos() / 1e6,
                    request.bytes());
        }
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
            List<SlowJson> slow,
            @Nullable Map<String, RequestLatencies.Summary> latency,
            int open,
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
                .limit(MAX_CONNECTIONS)
                .map(each -> ConnectionJson.of(each, now))
                .toList();
        return new RequestsJson(
                threshold.isZero() ? null : threshold.toMillis(),
                sources.slowRequests().recent().stream()
                        .filter(each -> viewer.sees(each.tenant()))
                        .map(SlowJson::of)
                        .toList(),
                viewer.administrator() ? sources.latencies().summaries() : null,
                seen.size(),
                shown.size(),
                shown);
    }

    private record SizeJson(double factor, long bytes, double hitRatio) {}

    private record PolicyJson(
            String name, boolean followsLru, long sampledUses, long hits, long lruHits, long switches) {}

    /// @param tokensSavedPerSecond in the last hour
    private record WhatIfJson(
            List<SizeJson> lru,
            long uses,
            double sampledShare,
            long dropped,
            @Nullable PolicyJson policy,
            long capacityBytes,
            @Nullable Double prefillTokensPerSecond,
            @Nullable Double tokensSavedPerSecond) {}

    private WhatIfJson whatIf() {
        ConsoleSources sources = parts.sources;
        LruHitRatioEstimator.Report curve = sources.curve().get();
        LruFallback.Report policy = sources.cache().lruFallbackReport();
        List<LoadSample> hour = parts.history.history(null, 60).samples();
        double seconds = hour.stream().mapToDouble(LoadSample::seconds).sum();
        long tokens = hour.stream().mapToLong(LoadSample::tokensSaved).sum();
        return new WhatIfJson(
                curve.sizes().stream()
                        .map(size -> new SizeJson(size.factor(), size.bytes(), size.lruHitRatio()))
                        .toList(),
                curve.uses(),
                curve.sampledShare(),
                curve.dropped(),
                policy.sampledUses() == 0
                        ? null
                        : new PolicyJson(
                                sources.policy(),
                                policy.followsLru(),
                                policy.sampledUses(),
                                policy.hits(),
                                policy.lruHits(),
                                policy.switches()),
                sources.cache().stats().host().capacityBytes(),
                sources.prefillTokensPerSecond(),
                seconds == 0 ? null : tokens / seconds);
    }

    private record SettingsJson(List<SettingInForce> settings) {}
}
