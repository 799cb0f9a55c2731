package io.kvcache.spring.actuate;

import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import java.io.UncheckedIOException;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/// Health of the cache.
///
/// | cache | up |
/// |---|---|
/// | embedded | always |
/// | remote | while a server answers |
/// | cluster | while one of its servers is connected; the others are in `unreachable` |
///
/// An application without its cache goes on with misses. Leave `kvcache` out of the readiness group if that is fast
/// enough.
public final class KvCacheHealthIndicator extends AbstractHealthIndicator {

    private final KvCache cache;

    /// @param cache stays the caller's
    public KvCacheHealthIndicator(KvCache cache) {
        super("the cache's health check failed");
        this.cache = cache;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        CacheServers servers = CacheServers.of(cache);
        builder.withDetail("mode", servers.mode());
        if (!servers.servers().isEmpty()) {
            builder.withDetail("addresses", servers.servers());
        }
        boolean isCluster = servers.mode().equals("cluster");
        if (isCluster) {
            builder.withDetail(
                    "unreachable",
                    servers.servers().stream()
                            .filter(each -> !servers.connected().contains(each))
                            .toList());
        }
        try {
            addStats(builder.up(), cache.stats());
        } catch (UncheckedIOException unanswered) {
            if (!isCluster || servers.connected().isEmpty()) {
                builder.down()
                        .withDetail(
                                "error", String.valueOf(unanswered.getMessage())); // an exception is logged each time
            }
        }
    }

    private static void addStats(Health.Builder builder, CacheStats stats) {
        builder.withDetail("blocks", stats.records().live())
                .withDetail("bytes", stats.host().heldBytes())
                .withDetail("capacityBytes", stats.host().capacityBytes());
    }
}
