package io.kvcache.bench.sim;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.DiskTier;
import io.kvcache.tiers.front.CachedDiskTier;
import io.kvcache.tiers.front.RetiredTiers;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.simulation.FaultRates;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One disk through all lives of a run, alone or with a faster tier in front of it: its bytes stay, the device and
/// the tier over them come and go.
final class SimDisk implements TierOpener {

    private final String name;
    private final MemorySegment storage;
    private final SimWorld world;
    private final SimDevice device;
    private final @Nullable SimFront front;
    private RetiredTiers parked = new RetiredTiers();
    private DiskLogConfig config;
    private boolean incompatible;
    private int offers;

    /// @param fronted whether a tier is in front
    SimDisk(String name, MemorySegment storage, SimWorld world, SimChoices choices, boolean fronted) {
        this.name = name;
        this.storage = storage;
        this.world = world;
        FaultRates rates = choices.weather().rates(world.random());
        device = new SimDevice(world, rates);
        front = fronted ? new SimFront(world, choices, rates) : null;
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
        SimFront before = front;
        return before == null
                ? openDisk(listener)
                : new CachedDiskTier(name + "'s front", this::openDisk, before::open, listener, parked);
    }

    @Override
    public void end() {
        parked.close();
    }

    private Tier openDisk(TierListener listener) {
        if (incompatible) {
            world.rare().count("disk discarded");
            config = config.withOnIncompatible(OnIncompatible.DISCARD);
        }
        DiskTier.Resources beneath = device.open(storage, () -> {});
        offers = 0;
        OfferWatch watch = new OfferWatch(listener, () -> offers++);
        return new DiskTier(name, beneath, config.withDeviceId(world.random().nextLong()), watch);
    }

    /// A disk that is none any more, because it was written to where it should not have been, is
    /// formatted the next time.
    @Override
    public RuntimeException refused(Tier tier) {
        incompatible |= tier.state() == TierState.REFUSED;
        world.rare().count("opening refused when " + tier.state());
        heal(rates());
        return new IllegalStateException(name + " is " + tier.state() + ": " + tier.cause());
    }

    /// The power goes.
    void crash() {
        parked = new RetiredTiers();
        device.crash();
        if (front != null) {
            front.device().crash();
        }
    }

    /// Spans that were about to be reclaimed since the opening.
    int offers() {
        return offers;
    }

    /// Its device, or that in front of it.
    ///
    /// @param inFront asked for, if there is one
    SimDevice device(boolean inFront) {
        return inFront && front != null ? front.device() : device;
    }

    boolean fronted() {
        return front != null;
    }

    /// Whether what is in front, if anything, serves.
    boolean whole() {
        return front == null || front.serves();
    }

    /// Ends what hangs and what is full; faults are as often as these say from here on, also of later
    /// openings.
    void heal(FaultRates change) {
        device.heal(change);
        if (front != null) {
            front.device().heal(change);
        }
    }

    FaultRates rates() {
        return device.rates();
    }
}
