package io.kvcache.bench.sim;

import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskTier;
import io.kvcache.tiers.simulation.FaultRates;
import org.jspecify.annotations.Nullable;

/// A tier in front of a disk, as a GPU's memory would be: smaller, and blank whenever it is opened.
///
/// It is a log over memory, as that one can be made to fail in every way; what device memory does is in gpu-bridge's
/// own tests.
final class SimFrontTier {

    private static final int REGIONS = 6;

    private final SimContext context;
    private final DiskLogConfig config;
    private final SimDevice device;
    private @Nullable Tier tier;

    SimFrontTier(SimContext world, SimConfig choices, FaultRates rates) {
        this.context = world;
        long region = choices.geometry().regionBytes();
        config = DiskLogConfig.of(new DiskGeometry(2 * SimConfig.MIB + REGIONS * region, region), 0)
                .withLimits(choices.log())
                .withReclaim(choices.reclaim());
        device = new SimDevice(world, rates);
    }

    SimDevice device() {
        return device;
    }

    Tier open(TierListener listener) {
        HostMemory memory = context.memory().reserve("front", config.geometry().deviceBytes());
        DiskTier.Resources resources = device.open(memory.segment(), memory::close);
        Tier opened = new DiskTier(
                "in front", resources, config.withDeviceId(context.random().nextLong()), listener);
        tier = opened;
        return opened;
    }

    /// Whether it is there, and has all that it needs.
    boolean isServing() {
        return device.isOpen() && tier != null && tier.state() == TierState.SERVING;
    }
}
