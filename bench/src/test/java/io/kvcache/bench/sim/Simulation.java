package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.bench.sim.SimConfig.FaultProfile;
import io.kvcache.bench.sim.SimDisk.SimDevice;
import io.kvcache.bench.sim.SimMemory.SlotPoisoner;
import io.kvcache.core.CacheStats;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierStats;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.StringJoiner;
import java.util.TreeMap;

/// One run of one seed: the production store, its tables, its movement, its tiers and its logs, in one
/// thread over disks in memory that fail as [FaultProfile] says, by a clock that only the run moves.
///
/// After each step it checks that
///
/// - every byte that is returned is the one that was put there, by [OpenTables] and [ObjectOracle];
/// - all slots, records and links agree, and what is resident or on disk has its parent there, by
///   [TieredKvCache#validate];
/// - no reader or disk uses a slot after its release, by [SimMemory.SlotPoisoner];
/// - the blocks that a flush has confirmed are on disk, and are found after a crash, by [DurabilityOracle];
/// - the store has reserved no memory since its start;
///
/// At the end, when faults have stopped, it checks that all work under way ends within [#TIMEOUT_NANOS],
/// that all disks come back, that no pin is left, and that all memory is released. On disks without
/// faults, no operation may fail at all.
final class Simulation {

    /// One seed in so many has devices in front of the disks.
    private static final int FRONT_TIER_MODULUS = 4;

    /// One seed in so many writes by value.
    private static final int VALUE_ADMISSION_MODULUS = 5;

    /// One seed in so many puts objects again that are there, and flushes before it closes.
    private static final int SETTLED_MODULUS = 4;

    /// One restart in so many is without one of the disks.
    private static final int LEFT_OUT_MODULUS = 4;

    /// Once faults stop, all pending work ends within this time.
    private static final long TIMEOUT_NANOS = 120 * SimClock.SECOND;

    /// How long a flush before closing is waited for.
    private static final long FLUSH_NANOS = 5 * SimClock.SECOND;

    private final SplittableRandom random;
    private final CoverageCounters coverage;
    private final SimConfig choices;
    private final boolean settled;
    private final int leftOut;
    private final SimStore store;
    private final SimKeySpace simKeySpace;
    private final ObjectOracle objects;
    private final DurabilityOracle durabilityOracle;
    private final OpenTables tables;
    private final SimWorkload simWorkload;
    private SlotPoisoner poison;
    private boolean told;
    private final Map<Integer, Long> steadyBytes = new HashMap<>();

    private Simulation(long seed, SimMemory memory, CoverageCounters rare) {
        random = new SplittableRandom(seed);
        this.coverage = rare;
        SimConfig chosen = SimConfig.of(random);
        choices = seed % VALUE_ADMISSION_MODULUS == 4 ? chosen.withAdmission(AdmissionKind.VALUE) : chosen;
        settled = seed % SETTLED_MODULUS == 0;
        leftOut = (int) (seed % choices.disks());
        store = new SimStore(choices, seed % FRONT_TIER_MODULUS == 2, memory, random.split(), rare);
        simKeySpace = new SimKeySpace(random.split());
        durabilityOracle = new DurabilityOracle(
                simKeySpace, this::unwritable, choices.faults().isDurable(), rare);
        objects = new ObjectOracle(random.split(), settled, durabilityOracle::discardUnreported, rare);
        tables = new OpenTables(store.clock(), random.split(), rare);
        simWorkload = new SimWorkload(store.clock(), simKeySpace, random.split(), rare);
        open();
    }

    /// Runs a seed.
    ///
    /// @param memory may have been used by another run before
    /// @param rare counts what happened
    /// @return the end: the same each time
    /// @throws AssertionError when anything is not as it must be
    public static String run(long seed, int steps, SimMemory memory, CoverageCounters rare) {
        try {
            Simulation simulation = new Simulation(seed, memory, rare);
            for (int i = 0; i < steps; i++) {
                simulation.step();
            }
            return simulation.end();
        } finally {
            memory.releaseAll();
        }
    }

    private boolean unwritable(BlockKey key) {
        return simKeySpace.namespaces().stream()
                .anyMatch(space ->
                        SimKeySpace.blockBytes(space) > store.maxBlockBytes() && simKeySpace.belongsTo(key, space));
    }

    private TieredKvCache cache() {
        return store.current().cache();
    }

    private void open() {
        store.open();
        simKeySpace.namespaces().forEach(cache()::register);
        cache().register(SimKeySpace.OBJECTS);
        poison = new SlotPoisoner(store.current().store());
        told = false;
    }

    private void step() {
        int dice = random.nextInt(1000);
        LocalKvCache cache = cache();
        if (dice < 300) {
            simWorkload.putPrompt(cache);
        } else if (dice < 520) {
            simWorkload.acquirePrompt(cache, tables);
        } else if (dice < 640) {
            tables.closeOne();
        } else if (dice < 680) {
            simWorkload.endWriter();
        } else if (dice < 840) {
            simWorkload.useObjects(cache, objects);
        } else if (dice < 880) {
            simWorkload.giveHint(cache);
        } else if (dice < 905) {
            pollEvents();
            simWorkload.drop(cache, durabilityOracle);
        } else if (dice < 908) {
            dropAll(cache);
        } else if (dice < 935) {
            durabilityOracle.beginFlush(
                    store.current(), objects.floors(), store.clock().nanos());
        } else if (dice < 950) {
            simWorkload.advanceTime();
        } else if (dice < 970) {
            injectFault();
        } else if (dice < 978) {
            restart();
        }
        for (int ticks = random.nextInt(4); ticks > 0; ticks--) {
            store.clock().sleep(SimClock.MILLI);
        }
        check();
    }

    private void dropAll(LocalKvCache cache) {
        if (random.nextInt(3) == 0) {
            objects.dropAll(cache);
        } else {
            pollEvents();
            simWorkload.dropAll(cache, durabilityOracle);
        }
    }

    private void injectFault() {
        int disk = random.nextInt(store.disks().size());
        if (choices.faults() == FaultProfile.CALM || choices.faults() == FaultProfile.LYING) {
            cache().reopenDisk(disk);
            return;
        }
        switch (random.nextInt(8)) {
            case 0 -> device(disk).hang();
            case 1 -> device(disk).fillUp();
            case 2, 3 -> cache().reopenDisk(disk);
            default -> store.disks().get(disk).heal(store.disks().get(disk).rates());
        }
    }

    private SimDevice device(int disk) {
        SimDisk present = store.disks().get(disk);
        return present.device(present.hasFrontTier() && random.nextBoolean());
    }

    private void restart() {
        pollEvents();
        SimEndState.countCoverage(cache(), coverage);
        if (random.nextInt(3) == 0) {
            simWorkload.endWriters();
            tables.closeAll();
            if (settled) {
                flushBeforeClosing();
            }
            TickDrivenCache closing = store.current();
            store.close();
            durabilityOracle.readEvents(closing);
            releaseUnreported(closing);
        } else {
            releaseUnreported(store.current());
            store.crash();
        }
        if (!told && !store.lastDisksWereReadable()) {
            durabilityOracle.releaseGivenUp();
        }
        tables.discardAll();
        simWorkload.discardAll();
        durabilityOracle.onRestart();
        objects.onRestart(choices.faults().isDurable());
        chooseDisks();
        open();
    }

    /// Sometimes leaves a disk out of the next life. What it has is not found then, and when it is back, only what
    /// cannot be older than what the others were told. In a run it is always the same one: were each alone for a
    /// while, one of them would have to give up what was promised. So all disks must have been there through the
    /// whole life before.
    private void chooseDisks() {
        store.useAllDisks();
        if (choices.disks() > 1 && random.nextInt(LEFT_OUT_MODULUS) == 0 && told && store.lastLifeWasComplete()) {
            store.leaveOut(leftOut);
            durabilityOracle.releaseUnreported();
        }
    }

    /// Flushes before a close, like a caller that wants to keep all blocks. A disk that hangs or was refused may
    /// prevent that.
    private void flushBeforeClosing() {
        durabilityOracle.beginFlush(
                store.current(), objects.floors(), store.clock().nanos());
        long since = store.clock().nanos();
        while (durabilityOracle.oldestFlushNanos() < Long.MAX_VALUE
                && store.clock().nanos() - since < FLUSH_NANOS) {
            store.clock().sleep(10 * SimClock.MILLI);
            pollEvents();
        }
        coverage.countIf("flush before closing", durabilityOracle.oldestFlushNanos() == Long.MAX_VALUE);
    }

    /// Stops expecting the blocks that no disk has reported, if recovery had not ended and the store lacked room
    /// or reopened a disk: it may have dropped such blocks without an event.
    private void releaseUnreported(TickDrivenCache life) {
        if (!told && !store.lostNothing(life)) {
            durabilityOracle.releaseUnreported();
        }
    }

    private void pollEvents() {
        durabilityOracle.pollEvents(store.current(), objects);
    }

    private void check() {
        cache().validate();
        poison.poisonFreeSlots();
        tables.checkAll();
        pollEvents();
        if (!told && store.allRecovered()) {
            told = true;
            durabilityOracle.verifyRecovered(
                    store.current().store(), choices.faults().isDurable() && store.lostNothing(store.current()));
        }
        if (store.allServing() && store.frontTiersServing() && told) {
            long reserved = store.reservedBytes();
            long before = steadyBytes.computeIfAbsent(store.disks().size(), _ -> reserved);
            require(reserved == before, () -> reserved + " bytes of memory are reserved, and were " + before);
        }
        requireNoFaults(cache().diskStats()); // asked each time, so that what they say is never older than a tick
    }

    /// On sound disks nothing fails, and a flush ends soon.
    private void requireNoFaults(List<TierTransferStats> disks) {
        if (choices.faults() != FaultProfile.CALM) {
            return;
        }
        for (TierTransferStats disk : disks) {
            require(disk.readFailures() == 0, () -> "reads of a sound disk failed: " + disk);
            require(disk.tier().writesFailed() == 0, () -> "writes to a sound disk failed: " + disk);
        }
        require(
                store.clock().nanos()
                                - Math.min(
                                        durabilityOracle.oldestFlushNanos(),
                                        store.clock().nanos())
                        < TIMEOUT_NANOS,
                () -> "a flush does not end: " + cache().offloadStats() + " " + cache().diskStats());
    }

    /// Faults stop; what is under way ends, the disks come back, and what they have is what it should be.
    private String end() {
        store.heal();
        settle();
        for (int disk = 0; disk < store.disks().size(); disk++) {
            cache().reopenDisk(disk);
        }
        settle();
        for (long waited = 0; !store.allServing(); waited += SimClock.SECOND) {
            String states = cache().diskStats().toString();
            require(waited < TIMEOUT_NANOS, () -> "a disk does not come back: " + states);
            store.clock().sleep(SimClock.SECOND);
        }
        durabilityOracle.beginFlush(
                store.current(), objects.floors(), store.clock().nanos());
        settle();
        SimEndState.countCoverage(cache(), coverage);
        pollEvents();
        String state = SimEndState.describe(store);
        releaseUnreported(store.current());
        store.crash();
        durabilityOracle.onRestart();
        objects.onRestart(choices.faults().isDurable());
        store.useAllDisks();
        open();
        settle();
        check();
        readAll();
        check();
        tables.closeAll();
        settle();
        String last = SimEndState.describe(store);
        store.close();
        return choices.faults() + " " + state + "\n" + last;
    }

    private void settle() {
        simWorkload.endWriters();
        tables.closeAll();
        long since = store.clock().nanos();
        do {
            store.clock().sleep(10 * SimClock.MILLI);
            check();
            require(
                    store.clock().nanos() - since < TIMEOUT_NANOS,
                    () -> "something does not end: " + cache().offloadStats() + " " + cache().diskStats());
        } while (!store.isIdle() || cache().isRecovering() || durabilityOracle.oldestFlushNanos() < Long.MAX_VALUE);
    }

    private void readAll() {
        for (int i = 0; i < 40; i++) {
            simWorkload.acquirePrompt(cache(), tables);
            objects.get(cache(), Duration.ofNanos(SimClock.SECOND));
            for (int wait = 0; wait < 4; wait++) { // so that some tables are seen while their layers come
                store.clock().sleep(5 * SimClock.MILLI);
                tables.checkAll();
            }
        }
    }

    /// The end state of a run, or of one life of its store.
    private static final class SimEndState {

        private SimEndState() {}

        /// The end state as values without names of classes or fields, so that a recorded one outlives a rename:
        /// the same for the same seed.
        static String describe(SimStore store) {
            TieredKvCache cache = store.current().cache();
            TreeMap<String, Boolean> keys = new TreeMap<>();
            DurabilityOracle.knownKeys(store.current().store())
                    .forEach((key, onDisk) ->
                            keys.put(String.format(Locale.ROOT, "%016x%016x", key.hi(), key.lo()), onDisk));
            StringJoiner text = new StringJoiner("\n");
            text.add("cache " + values(cache.stats()));
            text.add("writes " + values(cache.offloadStats()));
            cache.diskStats().forEach(disk -> text.add("disk " + values(disk)));
            text.add(keys.toString());
            text.add(cache.events().nextSequence() + " events at "
                    + store.clock().nanos());
            return text.toString();
        }

        private static List<Object> values(CacheStats stats) {
            List<Object> values = new ArrayList<>(List.of(
                    stats.host().heldBytes(),
                    stats.host().slabs(),
                    stats.host().slabMoves(),
                    stats.records().live(),
                    stats.puts().reserved(),
                    stats.puts().present(),
                    stats.puts().busy(),
                    stats.puts().noParent(),
                    stats.puts().noRoom(),
                    stats.puts().abandoned(),
                    stats.puts().foreign(),
                    stats.puts().declined(),
                    stats.removals().evicted(),
                    stats.removals().dropped(),
                    stats.removals().replaced(),
                    stats.openTables()));
            for (NamespaceStats space : stats.namespaces()) {
                values.addAll(List.of(
                        space.blocksRequested(),
                        space.blocksFound(),
                        space.blocksLoaded(),
                        space.objectsRequested(),
                        space.objectsFound(),
                        space.live(),
                        space.liveBytes()));
            }
            return values;
        }

        private static List<Object> values(DiskTierStats stats) {
            List<Object> values = new ArrayList<>(List.of(
                    stats.admitted(),
                    stats.written(),
                    stats.notWritten(),
                    stats.notYet(),
                    stats.tooLarge(),
                    stats.queueFull(),
                    stats.sacrificed(),
                    stats.evictedUnwritten(),
                    stats.waitingBytes(),
                    stats.writing(),
                    stats.restored(),
                    stats.superseded(),
                    stats.orphans(),
                    stats.withoutRecord()));
            stats.disks().forEach(disk -> values.addAll(List.of(disk.blocks(), disk.bytes(), disk.limitBytes())));
            return values;
        }

        private static List<Object> values(TierTransferStats disk) {
            TierStats tier = disk.tier();
            return List.of(
                    disk.state(),
                    disk.opened(),
                    disk.loaded(),
                    disk.loadedBytes(),
                    disk.readFailures(),
                    disk.cancelled(),
                    disk.readLatency().count(),
                    disk.readLatency().sumMicros(),
                    disk.writeLatency().count(),
                    disk.writeLatency().sumMicros(),
                    tier.blocksWritten(),
                    tier.blockBytesWritten(),
                    tier.writesFailed(),
                    tier.allBytesWritten(),
                    tier.readsGood(),
                    tier.readErrors(),
                    tier.checksumErrors(),
                    tier.regionsReclaimed(),
                    tier.blocksKept(),
                    tier.blocksRecovered(),
                    tier.coding().storedBytes(),
                    tier.coding().decodedBytes());
        }

        /// Counts the events of a life.
        static void countCoverage(TieredKvCache cache, CoverageCounters rare) {
            DiskTierStats offload = cache.offloadStats();
            rare.countIf("write in vain", offload.notWritten() > 0);
            rare.countIf("write queue full", offload.queueFull() > 0);
            rare.countIf("sacrificed", offload.sacrificed() > 0);
            rare.countIf("restored", offload.restored() > 0);
            rare.countIf("superseded", offload.superseded() > 0);
            rare.countIf("orphans", offload.orphans() > 0);
            rare.countIf("more found than records", offload.withoutRecord() > 0);
            rare.countIf("slab moved", cache.stats().host().slabMoves() > 0);
            for (TierTransferStats disk : cache.diskStats()) {
                rare.countIf("loaded", disk.loaded() > 0);
                rare.countIf("load cancelled", disk.cancelled() > 0);
                rare.countIf("read failed", disk.readFailures() > 0);
                rare.countIf("disk out and back", disk.opened() > 1);
                rare.countIf("reclaimed", disk.tier().regionsReclaimed() > 0);
                rare.countIf("coded", disk.tier().coding().blocks() > 0);
                rare.countIf("decoded", disk.tier().coding().decodedBytes() > 0);
                rare.countIf("kept at reclaim", disk.tier().blocksKept() > 0);
                rare.countIf("write failed", disk.tier().writesFailed() > 0);
            }
        }
    }
}
