package io.kvcache.server;

import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.Viewer;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.remote.RemoteEndpoint;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.HintStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.kvcache.transport.endpoint.EndpointStats;
import io.netty.handler.codec.http.HttpRequest;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/// The page `/v1/stats`: one JSON object, for administrators of the whole server, and for each tenant of its own part.
final class StatsEndpoint implements HttpEndpoint {

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
                    stats.objectsRequested(),
                    stats.objectsFound(),
                    stats.live(),
                    stats.liveBytes());
        }
    }

    private record TenantStats(String version, Map<String, KeyspaceStats> tenants, List<NamespaceLine> namespaces) {}

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
