package io.kvcache.server.console;

import io.kvcache.core.time.Clock;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.SlowRequestLog;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import java.time.InstantSource;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What the console reads.
///
/// @param keyspaces by tenant, of all tenants
/// @param curve estimated hit ratio for other memory sizes
/// @param chunkTokens tokens of one of LMCache's chunks
/// @param prefillTokensPerSecond that engines compute; null when it is not configured
/// @param policy name of the eviction policy
/// @param hasWriteBudget whether a disk may be written only so much a day
/// @param inCluster whether the server belongs to a cluster
public record ConsoleSources(
        TieredKvCache cache,
        Map<String, Keyspace> keyspaces,
        ConnectionRegistry connections,
        RequestLatencies latencies,
        SlowRequestLog slowRequests,
        MissLog misses,
        Supplier<LruHitRatioEstimator.Report> curve,
        Clock clock,
        InstantSource wall,
        int chunkTokens,
        @Nullable Double prefillTokensPerSecond,
        String policy,
        String version,
        boolean inCluster,
        boolean hasWriteBudget) {}
