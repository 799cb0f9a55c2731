package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.options.OnIncompatible;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import io.kvcache.tiers.simulation.FaultyDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;

/// A log over a device that fails as its [FaultRates] say, under a random workload, with crashes and restarts
/// at arbitrary points. All that is random follows from the seed.
final class LogSimulation implements AutoCloseable {

    /// Faults of a device.
    enum FaultProfile {
        /// Nothing; it loses what was not synced at a crash.
        CALM,
        /// It fails, and says so: writes, syncs, no space, operations that hang.
        HONEST,
        /// Reads fail or come with wrong bits too.
        UNREADABLE,
        /// It says that it wrote what it did not write, or not there.
        LYING
    }

    private static final int DEPTH = 16;
    private static final int MAX_BLOCK_BYTES = 60_000;

    private final SplittableRandom random;
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage;
    private DiskLogConfig config;
    private final FaultProfile faultProfile;
    private final FaultRates rates;
    private final DiskLogHarness rig = new DiskLogHarness(arena);
    private final Map<String, Integer> rare = new TreeMap<>();
    private FaultyDevice device;
    private int keepPercent;

    LogSimulation(long seed) {
        random = new SplittableRandom(seed);
        faultProfile = FaultProfile.values()[random.nextInt(FaultProfile.values().length)];
        DiskGeometry geometry = DiskGeometry.of((2L + 4 + random.nextInt(4)) << 20);
        storage = arena.allocate(geometry.deviceBytes(), DiskGeometry.PAGE_BYTES);
        LogLimits limits = new LogLimits(
                1 + random.nextInt(64),
                1 + random.nextInt(32),
                1 << (14 + random.nextInt(6)),
                1 + random.nextInt(50),
                8,
                50_000_000);
        ReclaimConfig rules = new ReclaimConfig(
                2 + random.nextInt(2), random.nextInt(51), 1 << (16 + random.nextInt(4)), random.nextBoolean());
        DiskLogConfig plain = DiskLogConfig.of(geometry, 0).withLimits(limits).withReclaim(rules);
        // Not drawn, so that seeds from before it still mean what they meant.
        config = seed % 5 > 1 ? plain.withStaging(true) : plain;
        rates = rates();
        rig.strict = faultProfile == FaultProfile.CALM || faultProfile == FaultProfile.HONEST;
        rig.keep = _ -> random.nextInt(100) < keepPercent;
        device = faulty(MemoryDevice.create(storage, DEPTH), rates);
        rig.open(device, config.withDeviceId(random.nextLong()));
    }

    private FaultRates rates() {
        FaultRates quiet = FaultRates.none().withMaxLatencyTicks(random.nextInt(6));
        double often = random.nextDouble() * 0.02;
        return switch (faultProfile) {
            case CALM -> quiet;
            case HONEST -> honest(quiet, often);
            case UNREADABLE ->
                honest(quiet, often).with(Fault.READ_ERROR, often).with(Fault.BIT_FLIP, often);
            case LYING ->
                quiet.with(Fault.LOST_WRITE, often)
                        .with(Fault.TORN_WRITE, often)
                        .with(Fault.MISDIRECTED_WRITE, often)
                        .with(Fault.BIT_FLIP, often);
        };
    }

    private static FaultRates honest(FaultRates rates, double often) {
        return rates.with(Fault.WRITE_ERROR, often)
                .with(Fault.SYNC_ERROR, often)
                .with(Fault.NO_SPACE, often / 20)
                .with(Fault.HANG, often / 20);
    }

    private FaultyDevice faulty(BlockDevice below, FaultRates with) {
        return new FaultyDevice(below, with, random.nextLong(), rig::now);
    }

    /// Runs so many steps, then opens the device once more without faults, reads everything, and writes it
    /// full.
    ///
    /// @return the end: equal for equal seeds
    String run(int steps) {
        for (int i = 0; i < steps; i++) {
            step();
        }
        crash(FaultRates.none());
        if (rig.log().state() == TierState.REFUSED) {
            crash(FaultRates.none());
        }
        rig.settle();
        readAll();
        fill();
        return "%s %s %s %08x %s"
                .formatted(
                        faultProfile,
                        rig.known.keySet(),
                        rig.outcomes,
                        MetadataCrc.of(storage),
                        rig.log().logStats());
    }

    /// A log on a sound device takes as much as it is given, and keeps what it promises, whatever happened
    /// before.
    private void fill() {
        rig.strict = true;
        rig.forgetPromises();
        registerIfServing();
        rig.settle();
        for (long left = storage.byteSize(); left > 0; left -= MAX_BLOCK_BYTES) {
            rig.appendAndWait(MAX_BLOCK_BYTES);
        }
        rig.flush();
        rig.settle();
        count("durable at the end", rig.flushes.peekLast());
        crash(FaultRates.none());
        rig.settle();
        readAll();
    }

    private void step() {
        switch (random.nextInt(100)) {
            case 0 -> maybeCrash();
            case 1, 2 -> rig.flush();
            case 3 -> keepPercent = random.nextInt(100);
            case 4 -> registerIfServing();
            case 5, 6, 7, 8, 9 -> readStale();
            case 10, 11 -> appendTombstone();
            case 12, 13 -> appendAgain();
            default -> {
                if (random.nextInt(3) == 0) {
                    readKnown();
                } else {
                    append();
                }
            }
        }
        for (int ticks = random.nextInt(4); ticks > 0; ticks--) {
            rig.tick();
        }
    }

    private void registerIfServing() {
        if (rig.log().state() == TierState.SERVING) {
            rig.log().register(DiskLogHarness.NAMESPACE);
        }
    }

    private void append() {
        if (rig.log().namespaceId(DiskLogHarness.NAMESPACE) < 0) {
            registerIfServing();
            return;
        }
        for (int i = random.nextInt(8); i > 0; i--) {
            int bytes = 1
                    + random.nextInt(
                            random.nextInt(config.stagingBytes() > 0 ? 15 : 50) == 0 ? 500_000 : MAX_BLOCK_BYTES);
            count("full", rig.append(bytes) == 0);
        }
    }

    private void appendTombstone() {
        if (rig.log().namespaceId(DiskLogHarness.NAMESPACE) < 0) {
            return;
        }
        if (random.nextInt(20) == 0) {
            count("all buried", rig.appendNamespaceTombstone() == SubmitResult.ACCEPTED);
        } else if (!rig.known.isEmpty()) {
            count("buried", rig.appendTombstone(someKnown()) == SubmitResult.ACCEPTED);
        }
    }

    /// Replaces a block, or brings one back that was buried.
    private void appendAgain() {
        if (rig.log().namespaceId(DiskLogHarness.NAMESPACE) >= 0 && !rig.known.isEmpty()) {
            long key = 1 + random.nextLong(rig.known.lastKey());
            count("appended again", rig.appendAgain(key, 1 + random.nextInt(MAX_BLOCK_BYTES)));
        }
    }

    private void readKnown() {
        if (!rig.known.isEmpty()) {
            long key = someKnown();
            rig.read(key);
            int bytes = rig.knownBlock(key).entry().bytes();
            int from = (int) (mix(key + bytes) % bytes);
            if (config.stagingBytes() > 0
                    && rig.readRange(key, from, Math.min(bytes - from, 1 + MAX_BLOCK_BYTES)) == SubmitResult.ACCEPTED) {
                count("part read", true);
            }
        }
    }

    /// Not drawn either.
    private static long mix(long value) {
        long mixed = value * 0x9E37_79B9_7F4A_7C15L;
        return (mixed ^ mixed >>> 29) >>> 1;
    }

    private long someKnown() {
        Long from = rig.known.ceilingKey(random.nextLong(rig.known.lastKey() + 1));
        return from == null ? rig.known.firstKey() : from;
    }

    private void readStale() {
        DiskLogHarness.Known gone = rig.staleBlocks.poll();
        if (gone != null) {
            count("stale", rig.read(gone.entry().keyHi(), gone) == SubmitResult.GONE);
        }
    }

    /// A crash is likely where a log has ended anyway.
    private void maybeCrash() {
        if (random.nextInt(3) == 0 || rig.log().state() != TierState.SERVING) {
            crash(rates);
        }
    }

    private void crash(FaultRates next) {
        count("crash when " + rig.log().state(), true);
        countStats();
        if (rig.log().state() == TierState.REFUSED) {
            config = config.withOnIncompatible(OnIncompatible.DISCARD);
        }
        device = faulty(device.crash(), next);
        rig.open(device, config.withDeviceId(random.nextLong()));
        for (int i = 0; i < 30; i++) {
            rig.tick();
        }
    }

    private void countStats() {
        count("crash while recovering", rig.log().isRecovering());
        if (!rig.log().hasStats()) {
            return;
        }
        DiskLogStats stats = rig.log().logStats();
        requireCounts(stats);
        count("coded", stats.coding().blocks() > 0);
        count("left plain", stats.coding().leftPlain() > 0);
        count("decoded", stats.coding().decodedBytes() > 0);
        count("kept", stats.reclaimed().kept() > 0);
        count("dropped", stats.reclaimed().dropped() > 0);
        count("lost", stats.reclaimed().lost() > 0);
        count("append failed", stats.appendsFailed() > 0);
        count("I/O error", stats.reads().ioErrors() > 0);
        count("checksum error", stats.reads().checksumErrors() > 0);
        count("tombstones recovered", stats.recovered().tombstones() > 0);
        count("recovered", stats.recovered().entries() > 0);
        count("bad region", stats.regions().bad() > 0);
        count("crash while closing", stats.regions().closing() > 0);
        count("crash while reclaiming", stats.regions().reclaiming() > 0);
        count("crash while freeing", stats.regions().freeing() > 0);
    }

    /// The log counts what was told.
    private void requireCounts(DiskLogStats stats) {
        assertThat(stats.appended()).isEqualTo(rig.appended);
        DiskLogStats.Reads reads = stats.reads();
        long ended = reads.good() + reads.ioErrors() + reads.checksumErrors();
        assertThat(ended).isEqualTo(rig.read);
        DiskLogStats.RegionCounts regions = stats.regions();
        int sum = regions.free()
                + regions.open()
                + regions.closing()
                + regions.closed()
                + regions.reclaiming()
                + regions.freeing()
                + regions.bad();
        if (!rig.log().isRecovering()) {
            assertThat(sum).isEqualTo(rig.log().regions());
        }
    }

    private void readAll() {
        for (long key : rig.known.keySet()) {
            while (rig.read(key) == SubmitResult.RETRY) {
                rig.tick();
            }
        }
        rig.settle();
    }

    private void count(String what, boolean happened) {
        if (happened) {
            rare.merge(what, 1, Integer::sum);
        }
    }

    /// How often something rare happened.
    Map<String, Integer> rareEvents() {
        return rare;
    }

    DiskLogHarness rig() {
        return rig;
    }

    @Override
    public void close() {
        arena.close();
    }
}
