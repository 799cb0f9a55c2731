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
final class SimFront {

    private static final int REGIONS = 6;

    private final SimWorld world;
    private final DiskLogConfig config;
    private final SimDevice device;
    private @Nullable Tier tier;

    SimFront(SimWorld world, SimChoices choices, FaultRates rates) {
        this.world = world;
        long region = choices.geometry().regionBytes();
        config = DiskLogConfig.of(new DiskGeometry(2 * SimChoices.MIB + REGIONS * region, region), 0)
                .withLimits(choices.log())
                .withReclaim(choices.reclaim());
        device = new SimDevice(world, rates);
    }

    SimDevice device() {
        return device;
    }

    Tier open(TierListener listener) {
        HostMemory memory = world.memory().reserve("front", config.geometry().deviceBytes());
        DiskTier.Resources beneath = device.open(memory.segment(), memory::close);
        Tier opened = new DiskTier(
                "in front", beneath, config.withDeviceId(world.random().nextLong()), listener);
        tier = opened;
        return opened;
    }

    /// Whether it is there, and has all that it needs.
    boolean serves() {
        return device.isOpen() && tier != null && tier.state() == TierState.SERVING;
    }
}
