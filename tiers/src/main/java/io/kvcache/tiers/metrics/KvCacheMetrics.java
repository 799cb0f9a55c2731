package io.kvcache.tiers.metrics;

import io.kvcache.core.CacheAdmin;
import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.ToDoubleFunction;

/// Binds a store's statistics to a registry, under the usual `cache.*` names and `kv.*` for what only this store
/// has.
///
/// ```java
/// new KvCacheMetrics(cache, "kv").bindTo(registry);
/// ```
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `cache.gets` | `result` hit or miss, `namespace`, `tenant` | blocks and objects |
/// | `kv.blocks.arrived` | `namespace`, `tenant` | blocks, or parts, from a slower tier for a request |
/// | `cache.puts` | `outcome` | blocks and objects |
/// | `cache.evictions` | `cause` | blocks and objects |
/// | `cache.size` | `namespace`, `tenant` | blocks and objects |
/// | `kv.memory.held`, `kv.memory.capacity` | `tier` | bytes |
/// | `kv.room.attempts.failed` | | attempts to make room that found none, several for a put that waits |
/// | `kv.prompt.tokens` | `result` found or hashed | tokens of prompts whose chain was asked of an embedded store |
/// | `kv.tables.open`, `kv.slabs.moved`, `kv.touches.lost` | | |
///
/// At most [CardinalityLimit#MAX_LABELS] pairs of namespace and tenant get a series of their own, in order of
/// registration; the rest add up under `other`. A namespace that is registered later appears after the next
/// reading of any meter.
///
/// **Threads.** Any; every reading takes the store's lock for some microseconds.
public final class KvCacheMetrics implements MeterBinder {

    private final CacheAdmin cache;
    private final Tags tags;
    private final CardinalityLimit labels = new CardinalityLimit();

    /// @param cache asked for its statistics at each reading; the meters keep no reference to it
    /// @param name value of the tag `cache`
    public KvCacheMetrics(CacheAdmin cache, String name) {
        this.cache = cache;
        this.tags = Tags.of("cache", name);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        bindMemory(registry);
        bindPuts(registry);
        counter(
                registry,
                "cache.evictions",
                tags.and("cause", "evicted"),
                stats -> stats.removals().evicted());
        counter(
                registry,
                "cache.evictions",
                tags.and("cause", "dropped"),
                stats -> stats.removals().dropped());
        counter(
                registry,
                "cache.evictions",
                tags.and("cause", "replaced"),
                stats -> stats.removals().replaced());
        counter(
                registry,
                "cache.evictions",
                tags.and("cause", "quota"),
                stats -> stats.removals().quota());
        counter(registry, "kv.slabs.moved", tags, stats -> stats.host().slabMoves());
        counter(registry, "kv.touches.lost", tags, CacheStats::droppedAccesses);
        gauge(registry, "kv.tables.open", tags, CacheStats::openTables);
        if (cache instanceof TieredKvCache embedded) {
            bindPrompts(registry, embedded);
        }
        bindNamespaces(registry, cache.stats());
    }

    private void bindPrompts(MeterRegistry registry, TieredKvCache embedded) {
        MeterMetadata.counter(
                registry,
                embedded,
                "kv.prompt.tokens",
                tags.and("result", "found"),
                store -> store.promptTokens().found());
        MeterMetadata.counter(
                registry,
                embedded,
                "kv.prompt.tokens",
                tags.and("result", "hashed"),
                store -> store.promptTokens().hashed());
    }

    private void bindMemory(MeterRegistry registry) {
        Tags host = tags.and("tier", "host");
        gauge(registry, "kv.memory.capacity", host, stats -> stats.host().capacityBytes());
        gauge(registry, "kv.memory.held", host, stats -> {
            bindNamespaces(registry, stats);
            return stats.host().heldBytes();
        });
    }

    private void bindPuts(MeterRegistry registry) {
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "reserved"),
                stats -> stats.puts().reserved());
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "present"),
                stats -> stats.puts().present());
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "busy"),
                stats -> stats.puts().busy());
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "no_parent"),
                stats -> stats.puts().noParent());
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "no_room"),
                stats -> stats.puts().noRoom());
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "foreign"),
                stats -> stats.puts().foreign());
        counter(
                registry,
                "cache.puts",
                tags.and("outcome", "declined"),
                stats -> stats.puts().declined());
        counter(registry, "kv.room.attempts.failed", tags, stats -> stats.puts().attemptsWithoutRoom());
    }

    private void bindNamespaces(MeterRegistry registry, CacheStats now) {
        for (NamespaceStats each : now.namespaces()) {
            CardinalityLimit.Label label = labels.of(each.namespace());
            if (labels.markBound(label)) {
                Tags own = tags.and("namespace", label.namespace(), "tenant", label.tenant());
                counter(registry, "cache.gets", own.and("result", "hit"), sum(label, KvCacheMetrics::hits));
                counter(registry, "cache.gets", own.and("result", "miss"), sum(label, KvCacheMetrics::misses));
                counter(registry, "kv.blocks.arrived", own, sum(label, NamespaceStats::blocksLoaded));
                gauge(registry, "cache.size", own, sum(label, NamespaceStats::live));
            }
        }
    }

    private ToDoubleFunction<CacheStats> sum(CardinalityLimit.Label label, ToDoubleFunction<NamespaceStats> value) {
        return stats -> stats.namespaces().stream()
                .filter(each -> labels.of(each.namespace()).equals(label))
                .mapToDouble(value)
                .sum();
    }

    private static double hits(NamespaceStats stats) {
        return stats.blocksFound() + stats.objectsFound();
    }

    private static double misses(NamespaceStats stats) {
        return stats.blocksRequested() + stats.objectsRequested() - hits(stats);
    }

    private void counter(MeterRegistry registry, String name, Tags own, ToDoubleFunction<CacheStats> value) {
        MeterMetadata.counter(registry, cache, name, own, store -> value.applyAsDouble(store.stats()));
    }

    private void gauge(MeterRegistry registry, String name, Tags own, ToDoubleFunction<CacheStats> value) {
        MeterMetadata.gauge(registry, cache, name, own, store -> value.applyAsDouble(store.stats()));
    }

    /// Keeps the number of time series bounded, however many namespaces and tenants come.
    ///
    /// **Threads.** Any.
    static final class CardinalityLimit {

        /// Pairs of namespace and tenant with series of their own. A tenant can make namespaces at will; a metrics
        /// store that pays for each series cannot.
        static final int MAX_LABELS = 50;

        private static final Label OTHER = new Label("other", "other");

        private final Map<Namespace, Label> labels = new HashMap<>();
        private final Set<Label> distinct = new HashSet<>();
        private final Set<Label> bound = new HashSet<>();

        record Label(String namespace, String tenant) {}

        /// The label that a namespace counts under.
        synchronized Label of(Namespace namespace) {
            return labels.computeIfAbsent(namespace, this::assign);
        }

        private Label assign(Namespace namespace) {
            Label own = new Label(namespace.model(), namespace.owner());
            return distinct.contains(own) || (distinct.size() < MAX_LABELS && distinct.add(own)) ? own : OTHER;
        }

        /// Returns whether this label is bound for the first time.
        synchronized boolean markBound(Label label) {
            return bound.add(label);
        }
    }
}
