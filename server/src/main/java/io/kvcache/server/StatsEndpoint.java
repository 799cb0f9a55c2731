package io.kvcache.server;

import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.store.HostStore.PrefetchStats;
import io.kvcache.core.store.TierPort.DiskTierStats;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.HintStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.kvcache.transport.endpoint.EndpointStats;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/// The page `/v1/stats`: one JSON object, of the whole server or of one tenant.
final class StatsEndpoint {

    private final TieredKvCache cache;
    private final TenantKeyspaces tenantKeyspaces;
    private final ConnectionRegistry connectionRegistry;
    private final RequestLatencies latencies;
    private final Supplier<@Nullable EndpointStats> transport;
    private final AccessRecording uses;
    private final String version;

    StatsEndpoint(
            TieredKvCache cache,
            TenantKeyspaces tenantKeyspaces,
            ProtocolFactory.MetricSources metricSources,
            String version) {
        this.cache = cache;
        this.tenantKeyspaces = tenantKeyspaces;
        connectionRegistry = metricSources.connectionRegistry();
        latencies = metricSources.latencies();
        transport = metricSources.transport();
        uses = metricSources.uses();
        this.version = version;
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
    String ofTenant(String tenant) {
        return write(new TenantStats(
                version,
                only(tenant, keyspaces()),
                cache.stats().namespaces().stream()
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

    /// Everything.
    String ofServer() {
        CacheStats stats = cache.stats();
        return write(new Stats(
                version,
                stats.host(),
                stats.records(),
                stats.puts(),
                stats.removals(),
                cache.lruFallbackReport(),
                cache.hintStats(),
                uses.missRatioCurve(),
                uses.traceStats(),
                stats.openTables(),
                cache.diskStats(),
                cache.offloadStats(),
                cache.prefetchStats(),
                cache.blocksLeftOnDisk(),
                cache.isRecovering(),
                keyspaces(),
                clients(),
                transport.get(),
                latencies.summaries(),
                stats.namespaces().stream().map(NamespaceLine::of).toList()));
    }

    private Map<String, KeyspaceStats> keyspaces() {
        Map<String, KeyspaceStats> stats = new TreeMap<>();
        tenantKeyspaces.keyspaces().forEach((tenant, keyspace) -> stats.put(tenant, keyspace.stats()));
        return stats;
    }

    private Clients clients() {
        Map<String, Long> closed = new TreeMap<>();
        for (CloseReason reason : CloseReason.values()) {
            closed.put(reason.name().toLowerCase(Locale.ROOT), connectionRegistry.closedCount(reason));
        }
        return new Clients(connectionRegistry.openCount(), connectionRegistry.acceptedCount(), closed);
    }
}
