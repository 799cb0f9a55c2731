package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.Checks.require;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TickDrivenCache;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import java.util.List;
import java.util.SplittableRandom;

/// One run of one seed: the production store, its tables, its movement, its tiers and its logs, in one
/// thread over disks in memory that fail as [Weather] says, by a clock that only the run moves.
///
/// After each step it checks that
///
/// - every byte that is returned is the one that was put there, by [OpenTables] and [ObjectModel];
/// - all slots, records and links agree, and what is resident or on disk has its parent there, by
///   [TieredKvCache#validate];
/// - nobody uses a slot that was given back, by [SlotPoison];
/// - what a flush has promised is on disk, and after a crash found, by [Promises];
/// - memory is that which was reserved at the start;
///
/// and at the end, when faults have stopped, that whatever is under way ends in [#PATIENCE_NANOS], that
/// all disks come back, that no pin is left, and that all memory is given back. On sound disks nothing
/// may fail at all.
public final class Simulation {

    /// One seed in so many has a faster tier in front of each disk.
    private static final int FRONTED = 4;

    /// One seed in so many writes by value.
    private static final int VALUED = 5;

    /// One seed in so many puts objects again that are there, and flushes before it closes.
    private static final int SETTLED = 4;

    /// What is under way once faults stop ends in so long.
    private static final long PATIENCE_NANOS = 120 * SimClock.SECOND;

    /// How long a flush before closing is waited for.
    private static final long FLUSH_NANOS = 5 * SimClock.SECOND;

    private final SplittableRandom random;
    private final RareCounts rare;
    private final SimChoices choices;
    private final boolean settled;
    private final SimStore store;
    private final Corpus corpus;
    private final ObjectModel objects;
    private final Promises promises;
    private final OpenTables tables;
    private final Traffic traffic;
    private SlotPoison poison;
    private boolean told;
    private long steadyBytes;

    private Simulation(long seed, SimMemory memory, RareCounts rare) {
        random = new SplittableRandom(seed);
        this.rare = rare;
        SimChoices chosen = SimChoices.of(random);
        choices = seed % VALUED == 4 ? chosen.withAdmission(AdmissionKind.VALUE) : chosen;
        settled = seed % SETTLED == 0;
        store = new SimStore(choices, seed % FRONTED == 2, memory, random.split(), rare);
        corpus = new Corpus(random.split());
        promises = new Promises(corpus, this::unwritable, choices.weather().keepsPromises(), rare);
        objects = new ObjectModel(random.split(), settled, promises::overtaken, rare);
        tables = new OpenTables(store.clock(), random.split(), rare);
        traffic = new Traffic(store.clock(), corpus, random.split(), rare);
        open();
    }

    /// Runs a seed.
    ///
    /// @param memory may have been used by another run before
    /// @param rare counts what happened
    /// @return the end: the same each time
    /// @throws AssertionError when anything is not as it must be
    public static String run(long seed, int steps, SimMemory memory, RareCounts rare) {
        try {
            Simulation simulation = new Simulation(seed, memory, rare);
            for (int i = 0; i < steps; i++) {
                simulation.step();
            }
            return simulation.end();
        } finally {
            memory.takeAllBack();
        }
    }

    private boolean unwritable(BlockKey key) {
        return corpus.spaces().stream()
                .anyMatch(space -> Corpus.bytes(space) > store.maxBlockBytes() && corpus.isOf(key, space));
    }

    private TieredKvCache cache() {
        return store.now().cache();
    }

    private void open() {
        store.open();
        corpus.spaces().forEach(cache()::register);
        cache().register(Corpus.THINGS);
        poison = new SlotPoison(store.now().store());
        told = false;
    }

    private void step() {
        int dice = random.nextInt(1000);
        KvCache cache = cache();
        if (dice < 300) {
            traffic.put(cache);
        } else if (dice < 520) {
            traffic.acquire(cache, tables);
        } else if (dice < 640) {
            tables.closeOne();
        } else if (dice < 680) {
            traffic.endWriter();
        } else if (dice < 840) {
            traffic.objects(cache, objects);
        } else if (dice < 880) {
            traffic.hint(cache);
        } else if (dice < 905) {
            follow();
            traffic.drop(cache, promises);
        } else if (dice < 908) {
            dropAll(cache);
        } else if (dice < 935) {
            promises.flush(store.now(), objects.floors(), store.clock().nanos());
        } else if (dice < 950) {
            traffic.letTimePass();
        } else if (dice < 970) {
            trouble();
        } else if (dice < 978) {
            restart();
        }
        for (int ticks = random.nextInt(4); ticks > 0; ticks--) {
            store.clock().pause(SimClock.MILLI);
        }
        check();
    }

    private void dropAll(KvCache cache) {
        if (random.nextInt(3) == 0) {
            objects.dropAll(cache);
        } else {
            follow();
            traffic.dropAll(cache, promises);
        }
    }

    private void trouble() {
        int disk = random.nextInt(choices.disks());
        if (choices.weather() == Weather.CALM || choices.weather() == Weather.LYING) {
            cache().reopenDisk(disk);
            return;
        }
        switch (random.nextInt(8)) {
            case 0 -> device(disk).hang();
            case 1 -> device(disk).full();
            case 2, 3 -> cache().reopenDisk(disk);
            default -> store.disks().get(disk).heal(store.disks().get(disk).rates());
        }
    }

    private SimDevice device(int disk) {
        SimDisk present = store.disks().get(disk);
        return present.device(present.fronted() && random.nextBoolean());
    }

    private void restart() {
        follow();
        Outcome.count(cache(), rare);
        if (random.nextInt(3) == 0) {
            traffic.endWriters();
            tables.closeAll();
            if (settled) {
                flushBeforeClosing();
            }
            TickDrivenCache closing = store.now();
            store.close();
            promises.readEvents(closing);
            releaseUntold(closing);
        } else {
            releaseUntold(store.now());
            store.crash();
        }
        tables.forget();
        traffic.forget();
        promises.restart();
        objects.restart(choices.weather().keepsPromises());
        open();
    }

    /// As a caller does who wants all of it kept; a disk that hangs or was refused may prevent that.
    private void flushBeforeClosing() {
        promises.flush(store.now(), objects.floors(), store.clock().nanos());
        long since = store.clock().nanos();
        while (promises.oldestNanos() < Long.MAX_VALUE && store.clock().nanos() - since < FLUSH_NANOS) {
            store.clock().pause(10 * SimClock.MILLI);
            follow();
        }
        rare.countIf("flush before closing", promises.oldestNanos() == Long.MAX_VALUE);
    }

    /// What no disk has told of may have been given up with nobody hearing of it.
    private void releaseUntold(TickDrivenCache life) {
        if (!told && !store.keptAll(life)) {
            promises.release();
        }
    }

    private void follow() {
        promises.follow(store.now(), objects);
    }

    private void check() {
        cache().validate();
        poison.fill();
        tables.check();
        follow();
        if (!told && store.toldAll()) {
            told = true;
            promises.recovered(store.now().store(), choices.weather().keepsPromises() && store.keptAll(store.now()));
        }
        if (store.allServe() && store.frontsServe() && told) {
            steadyBytes = steadyBytes == 0 ? store.outBytes() : steadyBytes;
            require(
                    store.outBytes() == steadyBytes,
                    () -> store.outBytes() + " bytes of memory are reserved, and were " + steadyBytes);
        }
        requireCalm(cache().diskStats()); // asked each time, so that what they say is never older than a tick
    }

    /// On sound disks nothing fails, and a flush ends soon.
    private void requireCalm(List<TierTransferStats> disks) {
        if (choices.weather() != Weather.CALM) {
            return;
        }
        for (TierTransferStats disk : disks) {
            require(disk.readFailures() == 0, () -> "reads of a sound disk failed: " + disk);
            require(disk.tier().writesFailed() == 0, () -> "writes to a sound disk failed: " + disk);
        }
        require(
                store.clock().nanos()
                                - Math.min(promises.oldestNanos(), store.clock().nanos())
                        < PATIENCE_NANOS,
                () -> "a flush does not end: " + cache().offloadStats() + " " + cache().diskStats());
    }

    /// Faults stop; what is under way ends, the disks come back, and what they have is what it should be.
    private String end() {
        store.heal();
        settle();
        for (int disk = 0; disk < choices.disks(); disk++) {
            cache().reopenDisk(disk);
        }
        settle();
        for (long waited = 0; !store.allServe(); waited += SimClock.SECOND) {
            String states = cache().diskStats().toString();
            require(waited < PATIENCE_NANOS, () -> "a disk does not come back: " + states);
            store.clock().pause(SimClock.SECOND);
        }
        promises.flush(store.now(), objects.floors(), store.clock().nanos());
        settle();
        Outcome.count(cache(), rare);
        follow();
        String state = Outcome.state(store);
        releaseUntold(store.now());
        store.crash();
        promises.restart();
        objects.restart(choices.weather().keepsPromises());
        open();
        settle();
        check();
        readAll();
        check();
        tables.closeAll();
        settle();
        String last = Outcome.state(store);
        store.close();
        return choices.weather() + " " + state + "\n" + last;
    }

    private void settle() {
        traffic.endWriters();
        tables.closeAll();
        long since = store.clock().nanos();
        do {
            store.clock().pause(10 * SimClock.MILLI);
            check();
            require(
                    store.clock().nanos() - since < PATIENCE_NANOS,
                    () -> "something does not end: " + cache().offloadStats() + " " + cache().diskStats());
        } while (!store.idle() || cache().isRecovering() || promises.oldestNanos() < Long.MAX_VALUE);
    }

    private void readAll() {
        for (int i = 0; i < 40; i++) {
            traffic.acquire(cache(), tables);
            objects.get(cache(), SimClock.SECOND);
            store.clock().pause(20 * SimClock.MILLI);
            tables.check();
        }
    }
}
