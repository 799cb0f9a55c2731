package io.kvcache.bench.sim;

import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import java.util.SplittableRandom;

/// The faults of the disks of a run.
enum FaultProfile {
    /// Nothing; they lose what was not synced at a crash.
    CALM,
    /// They fail, and say so: writes, syncs, no space, operations that hang.
    HONEST,
    /// Reads fail or come with wrong bits too.
    UNREADABLE,
    /// They say that they wrote what they did not write, or not there.
    LYING;

    private static final double MAX_PROBABILITY = 0.02;
    private static final int MAX_LATENCY_MILLIS = 6;

    /// Faults that end the writing or the disk are this many times rarer, so that a disk lives for a while.
    private static final int RARE_DIVISOR = 20;

    /// Returns whether promised entries are there after a crash.
    boolean isDurable() {
        return this == CALM || this == HONEST;
    }

    FaultRates faultRates(SplittableRandom random) {
        FaultRates quiet = FaultRates.none().withMaxLatencyTicks(random.nextInt(MAX_LATENCY_MILLIS));
        double often = random.nextDouble() * MAX_PROBABILITY;
        return switch (this) {
            case CALM -> quiet;
            case HONEST -> reportedFaults(quiet, often);
            case UNREADABLE ->
                reportedFaults(quiet, often).with(Fault.READ_ERROR, often).with(Fault.BIT_FLIP, often);
            case LYING ->
                quiet.with(Fault.LOST_WRITE, often)
                        .with(Fault.TORN_WRITE, often)
                        .with(Fault.MISDIRECTED_WRITE, often)
                        .with(Fault.BIT_FLIP, often);
        };
    }

    private static FaultRates reportedFaults(FaultRates rates, double often) {
        return rates.with(Fault.WRITE_ERROR, often)
                .with(Fault.SYNC_ERROR, often / RARE_DIVISOR)
                .with(Fault.NO_SPACE, often / RARE_DIVISOR)
                .with(Fault.HANG, often / RARE_DIVISOR);
    }
}
