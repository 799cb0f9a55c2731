package io.kvcache.server.metrics;

import io.kvcache.server.block.BlockReads;
import io.kvcache.server.block.BlockStock;
import io.kvcache.server.block.BlockStocks;
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

    private static final BlockStock.Stats NONE = new BlockStock.Stats(0, 0, 0, 0);

    private static final BlockReads.Stats NO_READS = new BlockReads.Stats(0, 0, 0, 0, 0, 0, 0);

    private final BlockStocks blocks;

    /// @param blocks always of the same tenants
    public BlockMetrics(BlockStocks blocks) {
        this.blocks = blocks;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (String tenant : blocks.stats().keySet()) {
            gauge(registry, "kv.blocks", "blocks", tenant, BlockStock.Stats::blocks);
            gauge(registry, "kv.blocks.used", "bytes", tenant, BlockStock.Stats::usedBytes);
            count(registry, "kv.blocks.evicted", tenant, BlockStock.Stats::evicted);
            count(registry, "kv.blocks.refused", tenant, BlockStock.Stats::refused);
        }
        for (String tenant : blocks.reads().stats().keySet()) {
            reads(registry, "hit", tenant, BlockReads.Stats::hits);
            reads(registry, "absent", tenant, BlockReads.Stats::absent);
            reads(registry, "evicted", tenant, BlockReads.Stats::evicted);
            reads(registry, "quota", tenant, BlockReads.Stats::quota);
            reads(registry, "deleted", tenant, BlockReads.Stats::deleted);
            reads(registry, "busy", tenant, BlockReads.Stats::busy);
            reads(registry, "late", tenant, BlockReads.Stats::late);
        }
    }

    private void reads(MeterRegistry registry, String result, String tenant, ToLongFunction<BlockReads.Stats> of) {
        FunctionCounter.builder(
                        "kv.blocks.reads",
                        blocks,
                        all -> of.applyAsLong(all.reads().stats().getOrDefault(tenant, NO_READS)))
                .tags("tenant", tenant, "result", result)
                .register(registry);
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
        return blocks.stats().getOrDefault(tenant, NONE);
    }
}
