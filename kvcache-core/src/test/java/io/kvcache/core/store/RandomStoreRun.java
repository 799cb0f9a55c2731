package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.contract.EventFollower;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.SplittableRandom;

/// Random operations on a store and on its model, each answer compared.
///
/// The model cannot know what was evicted, so before each operation the store is asked what it has, and its
/// events must say the same. From there on every outcome is determined but one: whether there is room. That
/// is demanded when nothing is pinned, nothing is being written and nothing has to stay above the new block.
final class RandomStoreRun {

    /// @param validateEvery steps between two checks of the whole store
    record Plan(long seed, HostStoreConfig config, int validateEvery) {}

    /// A reserved record and the entry it is for.
    record Writer(int record, StoreModel.Entry entry) {}

    /// A pinned record and all that the pin holds, deepest first.
    record Pinned(int record, List<StoreModel.Entry> path) {}

    private static final int MAX_WRITERS = 6;
    private static final int MAX_PINS = 6;

    final HostStore store;
    final SplittableRandom random;
    final StoreModel model = new StoreModel();
    final List<Writer> writers = new ArrayList<>();
    final List<Pinned> pins = new ArrayList<>();
    private final Plan plan;
    private final EventFollower follower;
    private final RandomBlocks blocks;
    private final RandomObjects objects;
    private final EnumMap<PutOutcome, Long> outcomes = new EnumMap<>(PutOutcome.class);
    private long abandoned;
    private long steps;

    RandomStoreRun(Plan plan, HostStore store) {
        this.plan = plan;
        this.store = store;
        random = new SplittableRandom(plan.seed());
        blocks = new RandomBlocks(this);
        objects = new RandomObjects(this);
        follower = new EventFollower(store.events());
    }

    void steps(long count) {
        for (long i = 0; i < count; i++) {
            step();
        }
    }

    private void step() {
        int dice = random.nextInt(100);
        if (dice < 25) {
            blocks.reserve();
        } else if (dice < 50) {
            seal();
        } else if (dice < 56) {
            abandon();
        } else if (dice < 80) {
            blocks.step();
        } else {
            objects.step();
        }
        if (writers.size() > MAX_WRITERS) {
            seal();
        }
        if (random.nextInt(3) == 0 || pins.size() > MAX_PINS) {
            unpin();
        }
        steps++;
        check();
    }

    private void check() {
        follower.follow();
        assertThat(follower.next()).isEqualTo(store.events().nextSequence());
        if (steps % plan.validateEvery() == 0) {
            store.validate();
            pins.forEach(this::requireThere);
        }
        if (steps % (10L * plan.validateEvery()) == 0) {
            compareAll();
        }
    }

    /// The store, its events and the model about all keys.
    private void compareAll() {
        for (StoreModel.Entry entry : model.all()) {
            boolean found = has(entry.key);
            assertThat(follower.has(entry.key))
                    .as("events say of %s", entry.key)
                    .isEqualTo(found);
            assertThat(!found || entry.stage == StoreModel.Stage.SEALED)
                    .as("%s is found unsealed", entry.key)
                    .isTrue();
        }
        follower.stored()
                .keySet()
                .forEach(key ->
                        assertThat(model.sealed(key)).as("%s is not gone", key).isTrue());
    }

    boolean has(BlockKey key) {
        return RecordHandle.isFound(store.lookup().find(key.hi(), key.lo()));
    }

    /// Returns whether a first block or an object has to find room.
    boolean idle() {
        return pins.isEmpty() && writers.isEmpty();
    }

    PutReservation counted(PutReservation answer) {
        outcomes.merge(answer.outcome(), 1L, Long::sum);
        return answer;
    }

    void opened(Writer writer) {
        writers.add(writer);
    }

    private void seal() {
        if (writers.isEmpty()) {
            return;
        }
        Writer writer = writers.remove(random.nextInt(writers.size()));
        StoreModel.Entry entry = writer.entry();
        SealOutcome expected = SealOutcome.DROPPED;
        ContentStamps.write(entry.content(), bytes(writer.record(), entry));
        if (!entry.gone) {
            expected = model.seal(entry) ? SealOutcome.SEALED : SealOutcome.PENDING;
        }
        assertThat(store.seal(writer.record(), random.nextInt())).isEqualTo(expected);
        assertThat(has(entry.key) || expected != SealOutcome.SEALED).isTrue();
        assertThat(has(entry.key) && !model.sealed(entry.key)).isFalse();
    }

    private void abandon() {
        if (writers.isEmpty()) {
            return;
        }
        Writer writer = writers.remove(random.nextInt(writers.size()));
        model.abandon(writer.entry());
        store.abandon(writer.record());
        abandoned++;
    }

    /// Keeps a pin, or lets it go at once.
    void pinned(Pinned pin) {
        requireBytes(pin);
        pins.add(pin);
    }

    private void unpin() {
        if (!pins.isEmpty()) {
            Pinned pin = pins.remove(random.nextInt(pins.size()));
            requireThere(pin);
            requireBytes(pin);
            store.lookup().unpin(pin.record());
        }
    }

    private void requireThere(Pinned pin) {
        for (StoreModel.Entry entry : pin.path()) {
            assertThat(entry.gone || has(entry.key))
                    .as("pinned %s is there", entry.key)
                    .isTrue();
        }
    }

    private void requireBytes(Pinned pin) {
        int record = pin.record();
        for (StoreModel.Entry entry : pin.path()) {
            ContentStamps.require(entry.content(), bytes(record, entry));
            record = store.records().parent(record);
        }
    }

    private List<MemorySegment> bytes(int record, StoreModel.Entry entry) {
        return entry.space < 0
                ? store.segments(record)
                : List.of(store.slotSegment(store.records().hostPage(record), entry.bytes));
    }

    /// Lets go of everything, drops everything, and checks that nothing is left and that the counters add up.
    void finish() {
        while (!writers.isEmpty()) {
            abandon();
        }
        while (!pins.isEmpty()) {
            unpin();
        }
        blocks.dropSpaces();
        objects.dropSpace();
        check();
        compareAll();
        store.validate();
        CacheStats stats = store.stats(0);
        assertThat(model.size()).isZero();
        assertThat(stats.records().live()).isZero();
        assertThat(stats.host().heldBytes()).isZero();
        assertThat(stats.host().unusedSlabs()).isEqualTo(stats.host().slabs());
        assertThat(stats.puts())
                .isEqualTo(new CacheStats.Puts(
                        outcome(PutOutcome.RESERVED),
                        outcome(PutOutcome.PRESENT),
                        outcome(PutOutcome.BUSY),
                        outcome(PutOutcome.NO_PARENT),
                        0, // the store is asked itself here, and refuses nothing for good
                        abandoned,
                        outcome(PutOutcome.FOREIGN),
                        outcome(PutOutcome.NO_ROOM),
                        outcome(PutOutcome.DECLINED)));
        assertThat(stats.removals())
                .isEqualTo(new CacheStats.Removals(
                        follower.count(EventKind.EVICTED),
                        follower.count(EventKind.DROPPED),
                        follower.count(EventKind.REPLACED),
                        follower.count(EventKind.QUOTA)));
    }

    private long outcome(PutOutcome outcome) {
        return outcomes.getOrDefault(outcome, 0L);
    }

    long count() {
        return steps;
    }

    /// Counts the exercised cases, so that a run that tests nothing is noticed.
    String summary() {
        return "seed " + plan.seed() + ": " + steps + " steps, puts " + outcomes + ", evicted "
                + follower.count(EventKind.EVICTED);
    }
}
