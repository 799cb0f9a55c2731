package io.kvcache.bench.sim;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.FaultRates;
import io.kvcache.tiers.device.FaultyDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.DiskMemory;
import io.kvcache.tiers.disk.DiskTier;
import io.kvcache.tiers.movement.TierOpener;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/// One disk through all lives of a run: its bytes stay, the device and the tier over them come and go.
final class SimDisk implements TierOpener {

    private static final int DEPTH = 16;

    private final String name;
    private final MemorySegment storage;
    private final World world;
    private DiskLogConfig config;
    private FaultRates rates;
    private @Nullable FaultyDevice device;
    private boolean incompatible;
    private int offers;

    /// What is around a disk.
    ///
    /// @param memory of logs
    /// @param random of the faults
    record World(SimClock clock, SimMemory memory, SplittableRandom random, RareCounts rare) {}

    SimDisk(String name, MemorySegment storage, World world, SimChoices choices) {
        this.name = name;
        this.storage = storage;
        this.world = world;
        rates = choices.weather().rates(world.random);
        config = DiskLogConfig.of(choices.geometry(), 0)
                .withLimits(choices.log())
                .withReclaim(choices.reclaim());
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Tier open(TierListener listener) {
        if (incompatible) {
            world.rare.count("disk discarded");
            config = config.withOnIncompatible(OnIncompatible.DISCARD);
        }
        FaultyDevice opened = new FaultyDevice(
                MemoryDevice.over(storage, DEPTH), rates, world.random.nextLong(), world.clock::millis);
        device = opened;
        AutoCloseable owner = () -> {
            opened.close();
            device = null;
        };
        DiskTier.Beneath beneath = new DiskTier.Beneath(opened, owner, new DiskMemory(world.memory));
        offers = 0;
        OfferWatch watch = new OfferWatch(listener, () -> offers++);
        return new DiskTier(name, beneath, config.withDeviceId(world.random.nextLong()), watch);
    }

    /// A disk that is none any more, because it was written to where it should not have been, is
    /// formatted the next time.
    @Override
    public RuntimeException refused(Tier tier) {
        incompatible |= tier.state() == TierState.REFUSED;
        world.rare.count("opening refused when " + tier.state());
        heal(rates);
        return new IllegalStateException(name + " is " + tier.state() + ": " + tier.cause());
    }

    /// The power goes.
    void crash() {
        FaultyDevice present = device;
        if (present != null) {
            present.crash();
            device = null;
        }
    }

    /// Spans that were about to be reclaimed since the opening.
    int offers() {
        return offers;
    }

    void hang() {
        FaultyDevice present = device;
        if (present != null) {
            present.hang();
        }
    }

    void full() {
        FaultyDevice present = device;
        if (present != null) {
            present.full(true);
        }
    }

    /// Ends what hangs and what is full; faults are as often as these say from here on, also of later
    /// openings.
    void heal(FaultRates change) {
        rates = change;
        FaultyDevice present = device;
        if (present != null) {
            present.rates(change);
            present.full(false);
            present.resume();
        }
    }

    FaultRates rates() {
        return rates;
    }
}
