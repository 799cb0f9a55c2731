package io.kvcache.server.metrics;

import io.kvcache.server.block.BlockStock;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;

/// Binds what is counted of the blocks of tenants that have a quota.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.blocks` | `tenant` | blocks |
/// | `kv.blocks.used` | `tenant` | bytes, a part of `kv.used` |
/// | `kv.blocks.evicted` | `tenant` | blocks that went because of the quota |
/// | `kv.blocks.refused` | `tenant` | blocks for which the quota had no room |
public final class BlockMetrics implements MeterBinder {

    private static final BlockStock.Stats NONE = new BlockStock.Stats(0, 0, 0, 0);

    private final Supplier<Map<String, BlockStock.Stats>> stats;

    /// @param stats by tenant; always of the same tenants
    public BlockMetrics(Supplier<Map<String, BlockStock.Stats>> stats) {
        this.stats = stats;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (String tenant : stats.get().keySet()) {
            gauge(registry, "kv.blocks", "blocks", tenant, BlockStock.Stats::blocks);
            gauge(registry, "kv.blocks.used", "bytes", tenant, BlockStock.Stats::usedBytes);
            count(registry, "kv.blocks.evicted", tenant, BlockStock.Stats::evicted);
            count(registry, "kv.blocks.refused", tenant, BlockStock.Stats::refused);
        }
    }

    private void gauge(
            MeterRegistry registry, String name, String unit, String tenant, ToLongFunction<BlockStock.Stats> of) {
        Gauge.builder(name, () -> of.applyAsLong(of(tenant)))
                .tags("tenant", tenant)
                .baseUnit(unit)
                .register(registry);
    }

    private void count(MeterRegistry registry, String name, String tenant, ToLongFunction<BlockStock.Stats> of) {
        FunctionCounter.builder(name, this, metrics -> of.applyAsLong(metrics.of(tenant)))
                .tags("tenant", tenant)
                .register(registry);
    }

    private BlockStock.Stats of(String tenant) {
        return stats.get().getOrDefault(tenant, NONE);
    }
}
