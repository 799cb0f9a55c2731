package io.kvcache.bench.sim;

import io.kvcache.bench.sim.SimConfig.SimContext;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.tier.ForwardingListener;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskSet;
import io.kvcache.tiers.disk.DiskSet.SetMember;
import io.kvcache.tiers.movement.TierOpener;
import io.kvcache.tiers.options.OnIncompatible;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultyDevice;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One disk through all lives of a run, and perhaps a device in front of all disks beside it: its bytes stay, the
/// device and the tier over them come and go.
final class SimDisk implements TierOpener {

    private final String name;
    private final MemorySegment storage;
    private final SimContext context;
    private final SimDevice device;
    private final @Nullable SimFrontTier front;
    private DiskLogConfig config;
    private boolean incompatible;
    private int offers;
    private SetMember member;

    /// @param fronted whether there is a device beside it
    SimDisk(String name, MemorySegment storage, SimContext world, SimConfig choices, boolean fronted) {
        this.name = name;
        this.storage = storage;
        this.context = world;
        FaultRates rates = choices.faults().faultRates(world.random());
        device = new SimDevice(world, rates);
        member = newSet().add(name);
        front = fronted ? new SimFrontTier(world, choices, rates) : null;
        DiskLogConfig plain = DiskLogConfig.of(choices.geometry(), 0)
                .withLimits(choices.log())
                .withReclaim(choices.reclaim());
        config = plain.withStaging(choices.reclaim().discard());
    }

    /// Returns a set whose generations have numbers of this run.
    DiskSet newSet() {
        return new DiskSet(context.random()::nextLong);
    }

    /// Is one of the disks of a store that is about to be opened.
    void join(DiskSet set) {
        member = set.add(name);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Tier open(TierListener listener) {
        if (incompatible) {
            context.coverage().count("disk discarded");
            config = config.withOnIncompatible(OnIncompatible.DISCARD);
        }
        DiskLog.Resources resources = device.open(storage, member, () -> {});
        offers = 0;
        ReclaimObserver watch = new ReclaimObserver(listener, () -> offers++);
        return new DiskLog(name, resources, config.withDeviceId(context.random().nextLong()), watch);
    }

    /// A disk that is none any more, because it was written to where it should not have been, is
    /// formatted the next time.
    @Override
    public RuntimeException openFailure(Tier tier) {
        incompatible |= tier.state() == TierState.REFUSED;
        context.coverage().count("opening refused when " + tier.state());
        heal(rates());
        return new IllegalStateException(name + " is " + tier.state() + ": " + tier.cause());
    }

    /// The power goes.
    void crash() {
        device.crash();
        if (front != null) {
            front.device().crash();
        }
    }

    /// Spans that were about to be reclaimed since the opening.
    int reclaimCount() {
        return offers;
    }

    /// Its device, or that in front of it.
    ///
    /// @param inFront asked for, if there is one
    SimDevice device(boolean inFront) {
        return inFront && front != null ? front.device() : device;
    }

    /// Returns the device beside it, which is in front of all disks; null when there is none.
    @Nullable
    TierOpener front() {
        return front;
    }

    boolean hasFrontTier() {
        return front != null;
    }

    /// Returns whether the faster tier in front, if any, serves.
    boolean isFrontServing() {
        return front == null || front.isServing();
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

    /// Forwards a tier's events to its store, and runs a watcher before a span is reclaimed.
    private static final class ReclaimObserver extends ForwardingListener {

        private final Runnable watcher;

        ReclaimObserver(TierListener store, Runnable watcher) {
            super(store);
            this.watcher = watcher;
        }

        @Override
        public void onReclaim(ReclaimCandidates offer) {
            watcher.run();
            super.onReclaim(offer);
        }
    }

    /// A device in front of the disks, as a GPU's memory would be: smaller, and blank whenever it is opened.
    ///
    /// It is a log over memory, as that one can be made to fail in every way; what device memory does is in
    /// gpu-bridge's own tests.
    private static final class SimFrontTier implements TierOpener {

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

        @Override
        public String name() {
            return "in front";
        }

        @Override
        public RuntimeException openFailure(Tier refused) {
            device.heal(FaultRates.none());
            return new IllegalStateException("in front is " + refused.state() + ": " + refused.cause());
        }

        @Override
        public Tier open(TierListener listener) {
            HostMemory memory =
                    context.memory().reserve("front", config.geometry().deviceBytes());
            DiskLog.Resources resources = device.open(
                    memory.segment(), new DiskSet(context.random()::nextLong).add("in front"), memory::close);
            Tier opened = new DiskLog(
                    "in front", resources, config.withDeviceId(context.random().nextLong()), listener);
            tier = opened;
            return opened;
        }

        /// Returns whether it is there, and has all that it needs.
        boolean isServing() {
            return device.isOpen() && tier != null && tier.state() == TierState.SERVING;
        }
    }

    /// The device under a tier, which comes and goes with it, and what it does wrong.
    static final class SimDevice {

        private static final int DEPTH = 16;

        private final SimContext context;
        private FaultRates rates;
        private @Nullable FaultyDevice device;

        SimDevice(SimContext world, FaultRates rates) {
            this.context = world;
            this.rates = rates;
        }

        /// Opens it over some bytes.
        ///
        /// @param member the disk among those of its store
        /// @param afterwards run when its tier has closed it
        DiskLog.Resources open(MemorySegment storage, SetMember member, Runnable afterwards) {
            FaultyDevice opened = new FaultyDevice(
                    MemoryDevice.create(storage, DEPTH), rates, context.random().nextLong(), context.clock()::millis);
            device = opened;
            AutoCloseable owner = () -> {
                opened.close();
                device = null;
                afterwards.run();
            };
            return new DiskLog.Resources(opened, owner, context.memory(), null, member);
        }

        boolean isOpen() {
            return device != null;
        }

        /// The power goes.
        void crash() {
            FaultyDevice present = device;
            if (present != null) {
                present.crash();
                device = null;
            }
        }

        void hang() {
            FaultyDevice present = device;
            if (present != null) {
                present.hangAll();
            }
        }

        void fillUp() {
            FaultyDevice present = device;
            if (present != null) {
                present.setFull(true);
            }
        }

        /// Ends what hangs and what is full; faults are as often as these say from here on, also of later
        /// openings.
        void heal(FaultRates change) {
            rates = change;
            FaultyDevice present = device;
            if (present != null) {
                present.setRates(change);
                present.setFull(false);
                present.resume();
            }
        }

        FaultRates rates() {
            return rates;
        }
    }
}
