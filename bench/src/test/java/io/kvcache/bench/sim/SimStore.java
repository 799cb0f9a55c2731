package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.bench.sim.SimConfig.SimContext;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.disk.DiskSet;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.simulation.FaultRates;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The store of a run through all its lives, with its disks and its clock.
final class SimStore {

    private static final int RESERVE_PERCENT = 12;
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    /// Openings that faults may spoil; the next one is without.
    private static final int MAX_FAILED_OPENS = 10;

    private final SimClock clock = new SimClock(this::tick);
    private final SimMemory memory;
    private final SimConfig choices;
    private final CoverageCounters coverage;
    private final List<SimDisk> all = new ArrayList<>();
    private List<SimDisk> disks = all;
    private final long diskBytes;
    private @Nullable TickDrivenCache life;
    private boolean lastLifeWasComplete;
    private boolean lastDisksWereReadable;

    /// @param fronted whether devices are in front of the disks, one for each
    SimStore(SimConfig choices, boolean fronted, SimMemory memory, SplittableRandom random, CoverageCounters rare) {
        this.choices = choices;
        this.memory = memory;
        this.coverage = rare;
        for (int disk = 0; disk < choices.disks(); disk++) {
            MemorySegment storage = memory.reserve(
                            SimMemory.DISK, choices.geometry().deviceBytes())
                    .segment();
            SimContext world = new SimContext(clock, memory, random.split(), rare);
            all.add(new SimDisk("disk-" + disk, storage, world, choices, fronted));
        }
        diskBytes = memory.reservedBytes();
    }

    SimClock clock() {
        return clock;
    }

    /// The disks that the store has, or was opened with last.
    List<SimDisk> disks() {
        return disks;
    }

    /// The next opening is with all disks.
    void useAllDisks() {
        disks = all;
    }

    /// The next opening is without one disk.
    void leaveOut(int disk) {
        SimDisk left = all.get(disk);
        disks = all.stream().filter(each -> each != left).toList();
        coverage.count("disk left out");
    }

    TickDrivenCache current() {
        return Objects.requireNonNull(life, "not open");
    }

    private void tick() {
        TickDrivenCache present = life;
        if (present != null) {
            for (int disk = 0; disk < present.tierScheduler().tierCount(); disk++) {
                present.tierScheduler().tick(disk, 0);
            }
        }
    }

    /// Opens the store, again and again while faults prevent it.
    void open() {
        for (int attempt = 0; life == null; attempt++) {
            if (attempt == MAX_FAILED_OPENS) {
                heal();
            }
            DiskSet set = disks.getFirst().newSet();
            disks.forEach(disk -> disk.join(set));
            try {
                life = TickDrivenCache.open(configure());
            } catch (IllegalStateException refused) {
                cutPower();
            }
        }
    }

    private TickDrivenCache.Setup configure() {
        long alive = choices.reclaim().liveBytes(choices.geometry(), RESERVE_PERCENT);
        List<TierScheduler.TierSpec> targets = new ArrayList<>();
        disks.forEach(disk -> targets.add(new TierScheduler.TierSpec(
                disk, alive, new WriteBudget(choices.bytesPerSecond(), WriteBudget.UNLIMITED))));
        disks.stream()
                .map(SimDisk::front)
                .filter(Objects::nonNull)
                .forEach(front -> targets.add(new TierScheduler.TierSpec(
                        front, alive, new WriteBudget(WriteBudget.UNLIMITED, WriteBudget.UNLIMITED), true)));
        TierScheduler.AdmissionConfig admissionConfig = new TierScheduler.AdmissionConfig(
                choices.admission(), choices.waitingBytes(), maxBlockBytes(), AdmissionKind.defaultGain());
        return new TickDrivenCache.Setup(
                choices.host(), memory, clock, targets, admissionConfig, choices.limits(), TIMEOUT);
    }

    long maxBlockBytes() {
        return choices.geometry().maxEntryBytes();
    }

    /// The process and the power go at once.
    void crash() {
        coverage.count("crash");
        coverage.countIf("crash while recovering", current().cache().isRecovering());
        for (TierTransferStats disk : current().cache().diskStats()) {
            coverage.count("crash when " + disk.state());
        }
        noteCompleteness();
        life = null;
        cutPower();
    }

    private void noteCompleteness() {
        lastLifeWasComplete = allServing() && allRecovered();
        lastDisksWereReadable = current().cache().diskStats().stream()
                .allMatch(disk -> disk.state().isReadable());
    }

    /// Returns whether no disk was out at the end of the last life.
    boolean lastDisksWereReadable() {
        return lastDisksWereReadable;
    }

    /// Returns whether all disks were there through the whole last life.
    boolean lastLifeWasComplete() {
        return lastLifeWasComplete;
    }

    private void cutPower() {
        all.forEach(SimDisk::crash);
        memory.releaseAllButDisks();
    }

    /// Closes the store. The caller must have closed all tables and writers.
    void close() {
        all.forEach(disk -> disk.heal(disk.rates()));
        clock.sleep(SimWorkload.MAX_PIN_NANOS);
        requireUnpinned();
        List<FaultRates> rates = all.stream().map(SimDisk::rates).toList();
        heal(); // a disk that hangs now could not be let go of
        noteCompleteness();
        current().cache().close();
        life = null;
        for (int disk = 0; disk < rates.size(); disk++) {
            all.get(disk).heal(rates.get(disk));
        }
        require(
                memory.reservedBytes() == diskBytes,
                () -> memory.reservedBytes() - diskBytes + " bytes were not given back");
        coverage.count("close");
    }

    private void requireUnpinned() {
        current().cache().stats(); // lets go of pins whose time is over
        RecordPool records = current().store().records();
        boolean writing = current().cache().offloadStats().writing() > 0 || !areFrontsIdle();
        for (int i = 0; i < records.highWaterMark() && !writing; i++) {
            int record = i;
            long control = records.control(record);
            require(
                    ControlWord.state(control) != ControlWord.SEALED || ControlWord.pins(control) == 0,
                    () -> "record " + record + " has " + ControlWord.pins(control) + " pins without a holder");
        }
    }

    /// Ends all faults, for good.
    void heal() {
        all.forEach(disk -> disk.heal(FaultRates.none()));
    }

    boolean allServing() {
        return diskStats(current()).allMatch(disk -> disk.state() == TierState.SERVING);
    }

    /// Returns the statistics of the disks, without the devices in front of them.
    private Stream<TierTransferStats> diskStats(TickDrivenCache of) {
        return of.tierScheduler().stats().stream().limit(disks.size());
    }

    /// Returns whether every device in front of the disks serves. One may be out for minutes.
    boolean frontTiersServing() {
        return disks.stream().allMatch(SimDisk::isFrontServing);
    }

    /// Returns whether every disk has reported its blocks and has not been out since the opening.
    boolean allRecovered() {
        return !current().cache().isRecovering()
                && diskStats(current())
                        .allMatch(disk -> disk.opened() == 1 && disk.state().isReadable());
    }

    /// Returns whether a store has lost no block for lack of room since its opening: it reclaimed no region and
    /// never lacked a record. The store may be closed.
    boolean lostNothing(TickDrivenCache of) {
        return of.store().tierPort().stats().withoutRecord() == 0
                && diskStats(of).allMatch(disk -> disk.opened() == 1)
                && disks.stream().allMatch(disk -> disk.reclaimCount() == 0);
    }

    /// Returns whether no copy to a device in front of the disks is on its way, which pins its record.
    private boolean areFrontsIdle() {
        return areIdle(current().store().tierPort()::isFront);
    }

    boolean isIdle() {
        return areIdle(_ -> true);
    }

    private boolean areIdle(IntPredicate which) {
        TierScheduler tiers = current().tierScheduler();
        return IntStream.range(0, tiers.tierCount()).filter(which).allMatch(tiers::isIdle);
    }

    long reservedBytes() {
        return memory.reservedBytes();
    }
}
