package io.kvcache.spring.actuate;

import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import java.io.UncheckedIOException;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;

/// `/actuator/kvcache`: statistics of the cache and its namespaces.
@Endpoint(id = "kvcache")
public final class KvCacheEndpoint {

    private final KvCache cache;

    /// @param cache stays the caller's
    public KvCacheEndpoint(KvCache cache) {
        this.cache = cache;
    }

    /// Returns the statistics, or why there are none.
    @ReadOperation
    public CacheDescriptor cache() {
        CacheServers servers = CacheServers.of(cache);
        try {
            return new CacheDescriptor(
                    servers.mode(), servers.servers(), servers.connected(), StatsDescriptor.of(cache.stats()), null);
        } catch (UncheckedIOException unanswered) {
            return new CacheDescriptor(
                    servers.mode(), servers.servers(), servers.connected(), null, unanswered.getMessage());
        }
    }

    /// What the endpoint shows.
    ///
    /// @param mode `embedded`, `remote` or `cluster`
    /// @param addresses the server of a remote cache, all servers of a cluster
    /// @param connected those of them that are connected
    /// @param stats null while the servers do not answer
    /// @param error why there are no statistics, or null
    public record CacheDescriptor(
            String mode,
            List<String> addresses,
            List<String> connected,
            @Nullable StatsDescriptor stats,
            @Nullable String error) {}

    /// Statistics, by the names of the server's `/v1/stats`.
    ///
    /// @param hitRatio blocks found of those that `acquire` asked for, 0 to 1
    public record StatsDescriptor(
            CacheStats.Memory host,
            CacheStats.Records records,
            CacheStats.Puts puts,
            CacheStats.Removals removals,
            long openViews,
            double hitRatio,
            List<NamespaceDescriptor> namespaces) {

        static StatsDescriptor of(CacheStats stats) {
            return new StatsDescriptor(
                    stats.host(),
                    stats.records(),
                    stats.puts(),
                    stats.removals(),
                    stats.openTables(),
                    stats.hitRatio(),
                    stats.namespaces().stream().map(NamespaceDescriptor::of).toList());
        }
    }

    /// Statistics of a namespace, by the names of the server's `/v1/stats`.
    ///
    /// @param name of the model or collection
    public record NamespaceDescriptor(
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

        static NamespaceDescriptor of(NamespaceStats stats) {
            return new NamespaceDescriptor(
                    stats.namespace().model(),
                    stats.namespace().tenant(),
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
}
