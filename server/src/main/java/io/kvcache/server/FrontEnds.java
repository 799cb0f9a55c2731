package io.kvcache.server;

import io.kvcache.core.Clock;
import io.kvcache.server.config.ListenConfig;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.http.Page;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.lm.LmLayout;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.server.metrics.PrometheusText;
import io.kvcache.server.metrics.ServerMetrics;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.resp.RespContext;
import io.kvcache.server.resp.RespProtocol;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.DiskMetrics;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The protocols over one keyspace, and the pages that tell of all of it.
final class FrontEnds {

    private static final String TEXT = "text/plain; charset=utf-8";

    private final TieredKvCache cache;
    private final Keyspace keyspace;
    private final Connections connections;
    private final Clock clock;

    FrontEnds(TieredKvCache cache, Keyspace keyspace, Connections connections, Clock clock) {
        this.cache = cache;
        this.keyspace = keyspace;
        this.connections = connections;
        this.clock = clock;
    }

    /// What a listener speaks.
    List<Protocol> at(ListenConfig listen) {
        RespProtocol resp =
                new RespProtocol(new RespContext(cache, keyspace, connections, clock, clock.nanos(), version()));
        LmProtocol lm = new LmProtocol(keyspace, layout(listen));
        HttpProtocol http = new HttpProtocol(keyspace, pages(resp, lm), listen.withoutAuth());
        return switch (listen.protocol()) {
            case AUTO -> List.of(resp, lm, http);
            case RESP -> List.of(resp);
            case LM, LM_V0, LM_V1A, LM_V1B -> List.of(lm);
            case HTTP -> List.of(http);
        };
    }

    private static @Nullable LmLayout layout(ListenConfig listen) {
        return switch (listen.protocol()) {
            case LM_V0 -> LmLayout.V0;
            case LM_V1A -> LmLayout.V1A;
            case LM_V1B -> LmLayout.V1B;
            case AUTO, RESP, LM, HTTP -> null;
        };
    }

    private Map<String, Page> pages(RespProtocol resp, LmProtocol lm) {
        PrometheusText metrics = new PrometheusText(List.of(
                new KvCacheMetrics(cache, "server"),
                new DiskMetrics(cache, "server"),
                new ServerMetrics(keyspace, connections, Map.of("resp", resp::commandCount, "lm", lm::requestCount))));
        Health health = new Health(cache, connections);
        return Map.of(
                "/metrics", Page.of(PrometheusText.CONTENT_TYPE, metrics),
                "/v1/stats", Page.of("application/json", new StatsPage(cache, keyspace, connections, version())),
                "/health/live", Page.of(TEXT, () -> "live\n"),
                "/health/ready", new Page(TEXT, health::ready, health));
    }

    private static String version() {
        String version = CacheServer.class.getPackage().getImplementationVersion();
        return version == null ? "development" : version;
    }
}
