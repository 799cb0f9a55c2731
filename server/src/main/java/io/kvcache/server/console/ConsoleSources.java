package io.kvcache.server.console;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.SlowRequestLog;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import java.io.UncheckedIOException;
import java.time.InstantSource;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What the console reads.
///
/// @param keyspaces by tenant, of all tenants
/// @param clients programs and versions of the transport's clients that use a namespace now
/// @param curve estimated hit ratio for other memory sizes
/// @param chunkTokens tokens of one of LMCache's chunks
/// @param prefillTokensPerSecond that engines compute; null when it is not configured
/// @param policy name of the eviction policy
/// @param hasWriteBudget whether a disk may be written only so much a day
/// @param clusterDrop null where the server is in no cluster
public record ConsoleSources(
        TieredKvCache cache,
        Map<String, Keyspace> keyspaces,
        ConnectionRegistry connections,
        RequestLatencies latencies,
        SlowRequestLog slowRequests,
        MissLog misses,
        Supplier<Map<Namespace, Set<String>>> clients,
        Supplier<LruHitRatioEstimator.Report> curve,
        Clock clock,
        InstantSource wall,
        int chunkTokens,
        @Nullable Double prefillTokensPerSecond,
        String policy,
        String version,
        @Nullable ClusterDrop clusterDrop,
        boolean hasWriteBudget) {

    /// Drops a block of a cluster's groups, and all below it in its group, at all servers.
    @FunctionalInterface
    public interface ClusterDrop {

        /// Drops it here now, and has the other servers do so. May wait for a disk.
        ///
        /// @return how many blocks went here
        /// @throws UncheckedIOException when they went, and the disk cannot remember it
        long drop(Namespace groups, BlockKey from);
    }

    /// Returns whether the server belongs to a cluster.
    boolean inCluster() {
        return clusterDrop != null;
    }
}
