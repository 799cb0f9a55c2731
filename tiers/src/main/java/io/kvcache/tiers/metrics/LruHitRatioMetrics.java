package io.kvcache.tiers.metrics;

import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.function.Supplier;

/// Meters of what other sizes of memory would find.
///
/// | meter | tags | what |
/// |---|---|---|
/// | `kv.memory.lru.hit.ratio` | `factor` | what LRU would find in so many times the memory; an estimate |
/// | `kv.memory.lru.dropped` | | uses that the estimate did not see because they came too fast |
public final class LruHitRatioMetrics implements MeterBinder {

    private final Supplier<LruHitRatioEstimator.Report> memory;

    /// @param memory asked for each reading
    public LruHitRatioMetrics(Supplier<LruHitRatioEstimator.Report> memory) {
        this.memory = memory;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        List<LruHitRatioEstimator.Size> sizes = memory.get().sizes();
        for (int i = 0; i < sizes.size(); i++) {
            int index = i;
            Gauge.builder(
                            "kv.memory.lru.hit.ratio",
                            () -> memory.get().sizes().get(index).lruHitRatio())
                    .description(MeterMetadata.description("kv.memory.lru.hit.ratio"))
                    .tags("factor", String.valueOf(sizes.get(i).factor()))
                    .register(registry);
        }
        FunctionCounter.builder(
                        "kv.memory.lru.dropped", memory, each -> each.get().dropped())
                .description(MeterMetadata.description("kv.memory.lru.dropped"))
                .register(registry);
    }
}
