package io.kvcache.bench.sim;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import java.util.List;
import java.util.SplittableRandom;

/// The choices of a seed for a whole run: a store of a few slabs and records, and small disks, so that every limit
/// is reached.
///
/// @param disks one or two
/// @param bytesPerSecond that each disk may be written
record SimConfig(
        FaultProfile faults,
        HostStoreConfig host,
        AdmissionKind admission,
        TierWorkerLimits limits,
        long waitingBytes,
        int disks,
        DiskGeometry geometry,
        LogLimits log,
        ReclaimConfig reclaim,
        long bytesPerSecond) {

    private static final List<FaultProfile> FAULT_PROFILES = List.of(FaultProfile.values());
    private static final List<EvictionPolicyFactory> POLICIES = EvictionPolicies.all();
    private static final int EVENTS = 1 << 16;
    static final long MIB = 1L << 20;
    private static final long HANG_NANOS = 50 * SimClock.MILLI;

    SimConfig withAdmission(AdmissionKind change) {
        return new SimConfig(faults, host, change, limits, waitingBytes, disks, geometry, log, reclaim, bytesPerSecond);
    }

    static SimConfig of(SplittableRandom random) {
        long hostBytes = (2L + random.nextInt(2)) * SlabPool.MIN_BYTES;
        HostStoreConfig host = new HostStoreConfig(
                hostBytes,
                40 + random.nextInt(random.nextBoolean() ? 80 : 500),
                POLICIES.get(random.nextInt(POLICIES.size())),
                EVENTS);
        long region = (1L + random.nextInt(2)) * MIB;
        DiskGeometry geometry = new DiskGeometry(2 * MIB + (6L + random.nextInt(10)) * region, region);
        return new SimConfig(
                FAULT_PROFILES.get(random.nextInt(FAULT_PROFILES.size())),
                host,
                random.nextInt(3) > 0 ? AdmissionKind.ALWAYS : AdmissionKind.SECOND_HIT,
                new TierWorkerLimits(
                        (1L + random.nextInt(8)) * MIB,
                        (1L + random.nextInt(8)) * MIB,
                        1 + random.nextInt(16),
                        1 + random.nextInt(8)),
                (1L + random.nextInt(16)) * MIB,
                1 + random.nextInt(2),
                geometry,
                new LogLimits(
                        1 + random.nextInt(64),
                        1 + random.nextInt(32),
                        1 << (14 + random.nextInt(6)),
                        1 + random.nextInt(50),
                        8,
                        HANG_NANOS),
                new ReclaimConfig(
                        2 + random.nextInt(2), random.nextInt(51), 1 << (18 + random.nextInt(3)), random.nextBoolean()),
                random.nextInt(4) == 0 ? 20 * MIB : WriteBudget.UNLIMITED);
    }

    /// The environment of a disk.
    ///
    /// @param memory of logs
    /// @param random of the faults
    record SimContext(SimClock clock, SimMemory memory, SplittableRandom random, CoverageCounters coverage) {}

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
}
