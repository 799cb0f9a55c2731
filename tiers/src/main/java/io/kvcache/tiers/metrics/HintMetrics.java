package io.kvcache.tiers.metrics;

import io.kvcache.tiers.HintStats;
import io.kvcache.tiers.TieredKvCache;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.ToDoubleFunction;

/// Binds what becomes of hints.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.hints` | `taken` yes or no | hints |
/// | `kv.hints.said` | `what` label or weight | blocks of which it was said |
/// | `kv.hints.released` | `by` time or session | blocks that became next victims |
/// | `kv.hints.pinned` | | bytes of blocks that hints pin |
/// | `kv.hints.waiting` | | blocks whose time is not over yet |
/// | `kv.hints.sessions` | | sessions whose last turn is known |
///
/// **Threads.** Any.
public final class HintMetrics implements MeterBinder {

    private final TieredKvCache cache;
    private final Tags tags;

    /// @param name value of the tag `cache`
    public HintMetrics(TieredKvCache cache, String name) {
        this.cache = cache;
        tags = Tags.of("cache", name);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        counter(registry, "kv.hints", tags.and("taken", "yes"), HintStats::taken);
        counter(registry, "kv.hints", tags.and("taken", "no"), HintStats::notTaken);
        counter(registry, "kv.hints.said", tags.and("what", "label"), HintStats::blocksLabelled);
        counter(registry, "kv.hints.said", tags.and("what", "weight"), HintStats::blocksWeighed);
        counter(registry, "kv.hints.released", tags.and("by", "time"), HintStats::blocksExpired);
        counter(registry, "kv.hints.released", tags.and("by", "session"), HintStats::blocksLeft);
        gauge(registry, "kv.hints.pinned", HintStats::pinnedBytes);
        gauge(registry, "kv.hints.waiting", HintStats::blocksWaiting);
        gauge(registry, "kv.hints.sessions", HintStats::sessions);
    }

    private void counter(MeterRegistry registry, String name, Tags own, ToDoubleFunction<HintStats> value) {
        MeterMetadata.counter(registry, cache, name, own, store -> value.applyAsDouble(store.hintStats()));
    }

    private void gauge(MeterRegistry registry, String name, ToDoubleFunction<HintStats> value) {
        MeterMetadata.gauge(registry, cache, name, tags, store -> value.applyAsDouble(store.hintStats()));
    }
}
