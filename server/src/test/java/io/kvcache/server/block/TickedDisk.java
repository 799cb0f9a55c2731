package io.kvcache.server.block;

import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.time.Clock;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.WriteBudget;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;

/// A disk in memory that works when a test ticks its store.
///
/// @param bytes of it
record TickedDisk(long bytes) implements TierOpener {

    /// Opens a store of 32 MiB of host memory over a disk of 128 MiB.
    static TickDrivenCache openStore(Clock clock) {
        TickedDisk disk = new TickedDisk(4 * SlabPool.MIN_BYTES);
        return TickDrivenCache.open(new TickDrivenCache.Setup(
                new HostStoreConfig(SlabPool.MIN_BYTES, 2000, PolicyKind.LRU, 1 << 10),
                ArenaMemory.source(),
                clock,
                List.of(new TierScheduler.TierSpec(
                        disk, disk.bytes, new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED))),
                new TierScheduler.AdmissionConfig(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN),
                TierWorkerLimits.of(SlabPool.MIN_BYTES),
                Duration.ofSeconds(5)));
    }

    @Override
    public String name() {
        return "disk";
    }

    @Override
    public Tier open(TierListener listener) {
        BlockDevice device = MemoryDevice.create(Arena.ofAuto().allocate(bytes, 4096), 16);
        DiskLogConfig config = DiskLogConfig.of(DiskGeometry.of(bytes), 1).withStaging(false);
        return new DiskLog(name(), new DiskLog.Resources(device, () -> {}, ArenaMemory.source()), config, listener);
    }

    @Override
    public RuntimeException openFailure(Tier tier) {
        return new IllegalStateException(name() + ": " + tier.cause());
    }
}
