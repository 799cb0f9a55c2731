package io.kvcache.server;

import io.kvcache.core.Clock;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.access.Door;
import io.kvcache.server.access.Logins;
import io.kvcache.server.block.BlockStocks;
import io.kvcache.server.config.ListenConfig;
import io.kvcache.server.config.ListenProtocol;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.http.Area;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.http.HttpSite;
import io.kvcache.server.http.Page;
import io.kvcache.server.keyspace.Reach;
import io.kvcache.server.lm.LmLayout;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.server.metrics.BlockMetrics;
import io.kvcache.server.metrics.DiskLatencies;
import io.kvcache.server.metrics.EndpointMetrics;
import io.kvcache.server.metrics.Latencies;
import io.kvcache.server.metrics.ProcessMetrics;
import io.kvcache.server.metrics.PrometheusText;
import io.kvcache.server.metrics.ServerMetrics;
import io.kvcache.server.metrics.UseMetrics;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.quota.InFlight;
import io.kvcache.server.resp.RespContext;
import io.kvcache.server.resp.RespProtocol;
import io.kvcache.server.resp.ServerFacts;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.DiskMetrics;
import io.kvcache.tiers.metrics.HintMetrics;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.metrics.PolicyMetrics;
import io.kvcache.transport.endpoint.EndpointStats;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// The protocols over the tenants' values, and the pages that tell of all of it.
final class FrontEnds {

    private static final String TEXT = "text/plain; charset=utf-8";

    private final TieredKvCache cache;
    private final Tenants tenants;
    private final Connections connections;
    private final Clock clock;
    private final Counted counted;
    private final Areas areas;
    private final ServerFacts facts;
    private final InFlight arguments;
    private final List<RespProtocol> resps = new CopyOnWriteArrayList<>();
    private final List<LmProtocol> lms = new CopyOnWriteArrayList<>();
    private final List<HttpProtocol> https = new CopyOnWriteArrayList<>();

    /// What tells how it goes.
    ///
    /// @param transport of the endpoint for other JVMs; null in it where there is none
    /// @param more meters of what is only sometimes there
    record Counted(
            Connections connections,
            Latencies latencies,
            Logins logins,
            BlockStocks blocks,
            Supplier<@Nullable EndpointStats> transport,
            UseWatch uses,
            List<MeterBinder> more) {}

    FrontEnds(TieredKvCache cache, Tenants tenants, Counted counted, Clock clock, Areas areas, PolicyKind policy) {
        this.counted = counted;
        connections = counted.connections;
        this.areas = areas;
        this.cache = cache;
        this.tenants = tenants;
        this.clock = clock;
        facts = new ServerFacts(
                version(), policy, clock.nanos(), !cache.diskStats().isEmpty());
        arguments = RespProtocol.argumentsOfHeap();
    }

    /// What a listener speaks.
    ///
    /// @param door who may come in there
    List<Protocol> at(ListenConfig listen, Door door) {
        List<Protocol> spoken = new ArrayList<>();
        Set<ListenProtocol> asked = listen.protocols();
        if (asked.contains(ListenProtocol.RESP)) {
            RespProtocol resp = new RespProtocol(door, contexts(), arguments);
            resps.add(resp);
            spoken.add(resp);
        }
        ListenProtocol layout = listen.lm();
        if (layout != null) {
            spoken.add(lm(
                    layout,
                    listen.entry().tenant() == null
                            ? TenantConfig.DEFAULT
                            : listen.entry().tenant()));
        }
        boolean objects = asked.contains(ListenProtocol.HTTP);
        boolean pages = asked.contains(ListenProtocol.PAGES);
        if (objects || pages) {
            Map<String, Reach> served = objects ? tenants.reaches() : Map.of();
            List<Area> beside = new ArrayList<>();
            beside.addAll(objects ? areas.everybodys() : List.of());
            beside.addAll(pages ? areas.operators() : List.of(new OperatorsOnly(listen)));
            HttpProtocol http = new HttpProtocol(new HttpSite(
                    door,
                    served,
                    tenants.labels(),
                    pages(pages),
                    beside,
                    Set.copyOf(listen.entry().hosts())));
            https.add(http);
            spoken.add(http);
        }
        return spoken;
    }

    private LmProtocol lm(ListenProtocol layout, String tenant) {
        LmProtocol lm = new LmProtocol(
                tenants.reach(tenant),
                switch (layout) {
                    case LM_V0 -> LmLayout.V0;
                    case LM_V1A -> LmLayout.V1A;
                    case LM_V1B -> LmLayout.V1B;
                    case AUTO, RESP, LM, HTTP, PAGES -> null;
                });
        lms.add(lm);
        return lm;
    }

    private Map<String, RespContext> contexts() {
        Map<String, RespContext> contexts = new HashMap<>();
        Map<String, Reach> reaches = tenants.reaches();
        boolean sole = reaches.size() == 1;
        reaches.forEach((tenant, reach) -> contexts.put(
                tenant, new RespContext(cache, cache::unsavedBytes, tenant, sole, reach, connections, clock, facts)));
        return contexts;
    }

    /// @param all with those that tell of all tenants
    private Map<String, Page> pages(boolean all) {
        Map<String, Page> pages = new HashMap<>();
        pages.put("/health/live", new Page(TEXT, true, () -> true, () -> "live\n"));
        Health health = new Health(cache, connections);
        pages.put("/health/ready", new Page(TEXT, true, health::ready, health));
        if (all) {
            List<MeterBinder> binders = new ArrayList<>(List.of(
                    new KvCacheMetrics(cache, "server"),
                    new DiskMetrics(cache, "server"),
                    new DiskLatencies(cache, "server"),
                    new PolicyMetrics(cache, "server"),
                    new HintMetrics(cache, "server"),
                    new ProcessMetrics(version()),
                    new ServerMetrics(
                            tenants.keyspaces(),
                            connections,
                            Map.of(
                                    "resp",
                                            counts(
                                                    resps,
                                                    RespProtocol::commandCount,
                                                    RespProtocol::errorCount,
                                                    RespProtocol::droppedAfterOkCount),
                                    "lm",
                                            counts(
                                                    lms,
                                                    LmProtocol::requestCount,
                                                    LmProtocol::protocolErrorCount,
                                                    LmProtocol::droppedSilentlyCount),
                                    "http",
                                            counts(
                                                    https,
                                                    HttpProtocol::requestCount,
                                                    HttpProtocol::problemCount,
                                                    _ -> 0)),
                            counted.logins),
                    new BlockMetrics(counted.blocks),
                    new UseMetrics(counted.uses::memory, counted.uses::trace),
                    counted.latencies));
            if (counted.transport.get() != null) {
                binders.add(new EndpointMetrics(() -> Objects.requireNonNull(counted.transport.get())));
            }
            binders.addAll(counted.more);
            PrometheusText metrics = new PrometheusText(binders);
            pages.put("/metrics", Page.of(PrometheusText.CONTENT_TYPE, metrics));
            pages.put("/v1/stats", Page.of("application/json", new StatsPage(cache, tenants, counted, version())));
        }
        return pages;
    }

    private static <P> ServerMetrics.Requests counts(
            List<P> all, ToLongFunction<P> asked, ToLongFunction<P> refused, ToLongFunction<P> dropped) {
        return new ServerMetrics.Requests(
                () -> all.stream().mapToLong(asked).sum(),
                () -> all.stream().mapToLong(refused).sum(),
                () -> all.stream().mapToLong(dropped).sum());
    }

    private static String version() {
        String version = CacheServer.class.getPackage().getImplementationVersion();
        return version == null ? "development" : version;
    }
}
