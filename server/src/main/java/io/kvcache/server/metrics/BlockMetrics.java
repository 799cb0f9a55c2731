package io.kvcache.server.metrics;

import io.kvcache.server.block.BlockQuotaTracker;
import io.kvcache.server.block.BlockQuotaTrackers;
import io.kvcache.server.block.BlockReadStats;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.ToLongFunction;

/// Binds what is counted of blocks: of all that are read one by one, and of what tenants have that have a quota.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.blocks` | `tenant` | blocks |
/// | `kv.blocks.used` | `tenant` | bytes, a part of `kv.used` |
/// | `kv.blocks.evicted` | `tenant` | blocks that went because of the quota |
/// | `kv.blocks.refused` | `tenant` | blocks for which the quota had no room |
/// | `kv.blocks.reads` | `tenant`, `result` hit, absent, evicted, quota, deleted, busy or late, as of `kv.reads` |
/// blocks |
public final class BlockMetrics implements MeterBinder {

    private static final BlockQuotaTracker.Stats EMPTY_STATS = new BlockQuotaTracker.Stats(0, 0, 0, 0);

    private static final BlockReadStats.Stats EMPTY_READS = new BlockReadStats.Stats(0, 0, 0, 0, 0, 0, 0);

    private final BlockQuotaTrackers blocks;

    /// @param blocks always of the same tenants
    public BlockMetrics(BlockQuotaTrackers blocks) {
        this.blocks = blocks;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (String tenant : blocks.stats().keySet()) {
            gauge(registry, "kv.blocks", "blocks", tenant, BlockQuotaTracker.Stats::blocks);
            gauge(registry, "kv.blocks.used", "bytes", tenant, BlockQuotaTracker.Stats::usedBytes);
            count(registry, "kv.blocks.evicted", tenant, BlockQuotaTracker.Stats::evicted);
            count(registry, "kv.blocks.refused", tenant, BlockQuotaTracker.Stats::refused);
        }
        for (String tenant : blocks.readStats().stats().keySet()) {
            reads(registry, "hit", tenant, BlockReadStats.Stats::hits);
            reads(registry, "absent", tenant, BlockReadStats.Stats::absent);
            reads(registry, "evicted", tenant, BlockReadStats.Stats::evicted);
            reads(registry, "quota", tenant, BlockReadStats.Stats::quota);
            reads(registry, "deleted", tenant, BlockReadStats.Stats::deleted);
            reads(registry, "busy", tenant, BlockReadStats.Stats::busy);
            reads(registry, "late", tenant, BlockReadStats.Stats::late);
        }
    }

    private void reads(MeterRegistry registry, String result, String tenant, ToLongFunction<BlockReadStats.Stats> of) {
        FunctionCounter.builder(
                        "kv.blocks.reads",
                        blocks,
                        all -> of.applyAsLong(all.readStats().stats().getOrDefault(tenant, EMPTY_READS)))
                .tags("tenant", tenant, "result", result)
                .register(registry);
    }

    private void gauge(
            MeterRegistry registry,
            String name,
            String unit,
            String tenant,
            ToLongFunction<BlockQuotaTracker.Stats> of) {
        Gauge.builder(name, () -> of.applyAsLong(of(tenant)))
                .tags("tenant", tenant)
                .baseUnit(unit)
                .register(registry);
    }

    private void count(MeterRegistry registry, String name, String tenant, ToLongFunction<BlockQuotaTracker.Stats> of) {
        FunctionCounter.builder(name, this, metrics -> of.applyAsLong(metrics.of(tenant)))
                .tags("tenant", tenant)
                .register(registry);
    }

    private BlockQuotaTracker.Stats of(String tenant) {
        return blocks.stats().getOrDefault(tenant, EMPTY_STATS);
    }
}
