package io.kvcache.bench.disk;

import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.TierPort.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskTier;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.os.SystemClock;
import java.util.List;

/// Opens a full tier as a store does: what the disk tells goes into the tree of records, under its lock.
final class IndexedTierOpening {

    private static final long WAIT_NANOS = 1_000_000;
    private static final int EVENTS = 1 << 16;

    private IndexedTierOpening() {}

    /// Opens it once.
    ///
    /// @throws IllegalStateException when a block is not in the tree in the end, but for those of one chain: its
    ///     first may lie in the region that was open last, which cannot be found
    static TierOpenTiming reopen(SparseTierImage tier, double readingSeconds) {
        HostMemorySource memory = new MappedMemorySource(MemoryOptions.defaults());
        HostStoreConfig config = new HostStoreConfig(
                SlabPool.SLAB_BYTES, Math.toIntExact(tier.blockCount() + 1024), PolicyKind.LRU, EVENTS);
        try (HostStore store = new HostStore(config, memory)) {
            TierScheduler tierScheduler = new TierScheduler(
                    store.tierPort(),
                    SystemClock.INSTANCE,
                    List.of(new TierScheduler.TierSpec(
                            new ImageOpener(tier, memory),
                            Long.MAX_VALUE,
                            new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED))),
                    new TierScheduler.AdmissionConfig(AdmissionKind.ALWAYS, 1, 1, AdmissionKind.defaultGain()),
                    TierWorkerLimits.of(store.capacityBytes()));
            long start = System.nanoTime();
            tierScheduler.open(0);
            double serving = (System.nanoTime() - start) / 1e9;
            while (tierScheduler.isRecovering()) {
                tierScheduler.tick(0, WAIT_NANOS);
            }
            double full = (System.nanoTime() - start) / 1e9;
            DiskTierStats found = store.tierPort().stats();
            tierScheduler.close(0);
            long blocks = found.disks().getFirst().blocks();
            if (found.restored() - blocks > SparseTierImage.CHAIN_BLOCKS || found.withoutRecord() > 0) {
                throw new IllegalStateException("not every block is in the tree: " + found);
            }
            return new TierOpenTiming(serving, full, readingSeconds, blocks);
        }
    }

    private record ImageOpener(SparseTierImage tier, HostMemorySource memory) implements TierOpener {

        @Override
        public String name() {
            return "sparse tier";
        }

        @Override
        public Tier open(TierListener listener) {
            BlockDevice device = tier.openDevice();
            return new DiskTier(
                    name(),
                    new DiskTier.Resources(device, device, memory),
                    DiskLogConfig.of(DiskGeometry.of(device.size()), 1),
                    listener);
        }

        @Override
        public RuntimeException openFailure(Tier refused) {
            return new IllegalStateException(name() + " is " + refused.state() + ": " + refused.cause());
        }
    }
}
