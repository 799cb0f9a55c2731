package io.kvcache.tiers.metrics;

import io.kvcache.core.policy.LruFallback;
import io.kvcache.tiers.TieredKvCache;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.ToDoubleFunction;

/// Binds what a policy that learns says of itself; all zero under the others.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.policy.follows.lru` | | 1 while it orders by last use because LRU finds more |
/// | `kv.policy.switches` | | times that it was made to |
/// | `kv.policy.uses` | `order` own or lru | uses of blocks |
/// | `kv.policy.sampled`, `kv.policy.hits` | `of` own or lru, for hits | uses in the sample, and those found |
///
/// **Threads.** Any; every reading takes the store's lock for a moment.
public final class PolicyMetrics implements MeterBinder {

    private final TieredKvCache cache;
    private final Tags tags;

    /// @param name value of the tag `cache`
    public PolicyMetrics(TieredKvCache cache, String name) {
        this.cache = cache;
        tags = Tags.of("cache", name);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        MeterMetadata.gauge(
                registry,
                cache,
                "kv.policy.follows.lru",
                tags,
                store -> store.lruFallbackReport().followsLru() ? 1 : 0);
        counter(registry, "kv.policy.switches", tags, LruFallback.Report::switches);
        counter(registry, "kv.policy.uses", tags.and("order", "own"), all -> all.uses() - all.usesAsLru());
        counter(registry, "kv.policy.uses", tags.and("order", "lru"), LruFallback.Report::usesAsLru);
        counter(registry, "kv.policy.sampled", tags, LruFallback.Report::sampledUses);
        counter(registry, "kv.policy.hits", tags.and("of", "own"), LruFallback.Report::hits);
        counter(registry, "kv.policy.hits", tags.and("of", "lru"), LruFallback.Report::lruHits);
    }

    private void counter(MeterRegistry registry, String name, Tags own, ToDoubleFunction<LruFallback.Report> value) {
        MeterMetadata.counter(registry, cache, name, own, store -> value.applyAsDouble(store.lruFallbackReport()));
    }
}
