package io.kvcache.bench.sim;

import io.kvcache.bench.sim.SimConfig.SimContext;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskSet.SetMember;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultyDevice;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// The device under a tier, which comes and goes with it, and what it does wrong.
final class SimDevice {

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
