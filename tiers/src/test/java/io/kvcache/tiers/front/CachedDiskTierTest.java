package io.kvcache.tiers.front;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierRead.Outcome;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.tiers.front.CachedDiskTier.RetiredTiers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.text.MessageFormat;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// When a disk with something in front of it tells what, with both in the test's hands.
final class CachedDiskTierTest {

    private static final int BYTES = 5000;

    private final Arena arena = Arena.ofShared();
    private final Logger log = Logger.getLogger(FrontCacheTier.class.getName());
    private final RecordingTierListener store = new RecordingTierListener();
    private final List<ScriptedTier> fronts = new ArrayList<>();
    private ScriptedTier disk;
    private TierListener diskSide;
    private boolean refused;
    private final CachedDiskTier tier =
            new CachedDiskTier("front", this::openDisk, this::openFront, store, new RetiredTiers());
    private long now;

    @SuppressWarnings("NullAway.Init") // both are opened with the tier
    CachedDiskTierTest() {}

    @AfterEach
    void close() {
        tier.close();
        log.setLevel(null);
        arena.close();
    }

    private ScriptedTier openDisk(TierListener listener) {
        diskSide = listener;
        disk = new ScriptedTier(listener);
        return disk;
    }

    private ScriptedTier openFront(TierListener listener) {
        if (refused) {
            throw new IllegalStateException("not now");
        }
        fronts.add(new ScriptedTier(listener));
        return fronts.getLast();
    }

    private ScriptedTier front() {
        return fronts.getLast();
    }

    private static TierBlock block(long key, boolean object) {
        return new TierBlock(key, 1, 0, 0, 3, object, 0, BYTES, 0, 0);
    }

    private MemorySegment slot(long content) {
        MemorySegment slot = arena.allocate(8192, 4096);
        slot.set(ValueLayout.JAVA_LONG, BYTES / 8 * 8 - 8, content);
        return slot;
    }

    private void tick() {
        tick(1);
    }

    private void tick(long nanos) {
        now += nanos;
        tier.tick(now, 0);
    }

    private void write(long key) {
        assertThat(tier.write(block(key, false), List.of(slot(key)), key)).isEqualTo(SubmitResult.ACCEPTED);
    }

    private void let(boolean ofDisk, boolean ofFront) {
        disk.held = !ofDisk;
        front().held = !ofFront;
        tick();
        disk.held = true;
        front().held = true;
    }

    /// Writes a block to both.
    private long written(long key) {
        write(key);
        let(true, true);
        return Objects.requireNonNull(store.addresses.get(key));
    }

    private MemorySegment read(long key, long address, long tag) {
        MemorySegment into = slot(0);
        assertThat(tier.read(new TierRead(block(key, false), address, List.of(into), tag)))
                .isEqualTo(SubmitResult.ACCEPTED);
        return into;
    }

    private void requireRead(MemorySegment into, long key, long tag) {
        assertThat(store.reads.get(tag)).isEqualTo(Outcome.SUCCESS);
        assertThat(into.get(ValueLayout.JAVA_LONG, BYTES / 8 * 8 - 8)).isEqualTo(key);
    }

    @Test
    void givenAWrite_whenOneOfBothHasEnded_thenItsMemoryIsNotGivenBack() {
        write(1);
        write(2);
        let(true, false);
        assertThat(store.addresses).isEmpty();
        assertThat(tier.isIdle()).isFalse();
        let(false, true);
        assertThat(store.addresses).containsOnlyKeys(1L, 2L);
        assertThat(tier.isIdle()).isTrue();
        assertThat(tier.copyCount()).isEqualTo(2);
    }

    @Test
    void givenACopyInFront_whenRead_thenTheDiskIsNotAsked() {
        long address = written(1);
        MemorySegment into = read(1, address, 9);
        let(false, true);
        requireRead(into, 1, 9);
        assertThat(disk.requests).containsExactly("write 1");
    }

    @Test
    void givenACopyThatIsDamaged_whenRead_thenItComesFromTheDisk() {
        long address = written(1);
        front().corrupt = true;
        MemorySegment into = read(1, address, 9);
        let(false, true);
        assertThat(store.reads).isEmpty();
        assertThat(tier.isIdle()).isFalse();
        tick();
        assertThat(disk.requests).containsExactly("write 1", "read 1");
        front().corrupt = false;
        let(true, false);
        let(false, true);
        requireRead(into, 1, 9);
        assertThat(tier.copyCount()).as("copied again").isEqualTo(1);
    }

    @Test
    void givenABlockOnDiskAlone_whenRead_thenItIsInFrontBeforeItsSlotIsGivenBack() {
        long address = written(1);
        fail();
        MemorySegment into = read(1, address, 9);
        let(true, false);
        assertThat(store.reads).as("its slot is being copied from").isEmpty();
        assertThat(front().requests).containsExactly("write 1");
        let(false, true);
        requireRead(into, 1, 9);
        MemorySegment again = read(1, address, 10);
        let(false, true);
        requireRead(again, 1, 10);
        assertThat(front().requests).containsExactly("write 1", "read 1");
    }

    /// Takes the front out and has it come back blank.
    private void fail() {
        log.setLevel(Level.OFF);
        front().fail();
        tick();
        tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
        assertThat(fronts).hasSize(2);
        assertThat(tier.copyCount()).isZero();
    }

    @Test
    void givenAFrontThatFails_whenReadAndWritten_thenTheDiskServesAndItIsTriedAgainLaterAndLater() {
        long address = written(1);
        MemorySegment into = read(1, address, 9);
        write(2);
        log.setLevel(Level.OFF);
        refused = true;
        front().fail();
        let(true, true);
        tick();
        let(true, true);
        requireRead(into, 1, 9);
        assertThat(store.addresses).containsOnlyKeys(1L, 2L);
        tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
        refused = false;
        tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
        assertThat(fronts).as("tried again too early").hasSize(1);
        tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
        assertThat(fronts).hasSize(2);
        assertThat(written(3)).isPositive();
        assertThat(tier.copyCount()).isEqualTo(1);
    }

    @Test
    void givenABlockThatIsDroppedWhileItIsCopied_whenTheCopyEnds_thenNobodyFindsItInFront() {
        long address = written(1);
        fail();
        read(1, address, 9);
        let(true, false);
        assertThat(tier.tombstone(Tombstone.of(block(1, false)), 20)).isEqualTo(SubmitResult.ACCEPTED);
        let(true, true);
        assertThat(front().requests).containsExactly("write 1", "bury 1", "bury 1");
        assertThat(tier.copyCount()).isZero();
        assertThat(store.reads).containsEntry(9L, Outcome.SUCCESS);
    }

    @Test
    void givenAWriteThatTheDiskFailed_whenTheFrontHasIt_thenItIsBuriedThere() {
        write(1);
        disk.fail();
        let(true, true);
        assertThat(store.addresses).containsEntry(1L, -1L);
        assertThat(front().requests).containsExactly("write 1", "bury 1");
        assertThat(tier.copyCount()).isZero();
    }

    @Test
    void givenAnObject_whenWritten_thenItGoesToTheDiskAlone() {
        assertThat(tier.write(block(1, true), List.of(slot(1)), 1)).isEqualTo(SubmitResult.ACCEPTED);
        let(true, false);
        assertThat(store.addresses).containsKey(1L);
        assertThat(front().requests).isEmpty();
    }

    @Test
    void givenAFrontThatIsFull_whenItOffers_thenWhatWasReadSinceIsKeptOnce() {
        long first = written(1);
        written(2);
        read(1, first, 9);
        let(false, true);
        ListedCandidates offer = new ListedCandidates(List.of(1001L, 1002L), new ArrayList<>());
        front().offer(offer);
        assertThat(offer.kept()).containsExactly(1001L);
        assertThat(tier.copyCount()).isEqualTo(1);
        ListedCandidates again = new ListedCandidates(List.of(1001L), new ArrayList<>());
        front().offer(again);
        assertThat(again.kept()).isEmpty();
        assertThat(tier.copyCount()).isZero();
    }

    @Test
    void givenAPolicyWithAMeasure_whenTheFrontOffers_thenTheMostWantedIsKeptFirstAndTheWorthlessNotAtAll() {
        for (long key = 1; key <= 5; key++) {
            written(key);
        }
        store.scores.putAll(Map.of(1L, 0.0, 2L, 2.0, 3L, 1.0, 4L, 1.0, 5L, 3.0));
        front().use(block(1, false), 1001);
        ListedCandidates offer = new ListedCandidates(List.of(1001L, 1002L, 1003L, 1005L), new ArrayList<>());
        front().offer(offer);
        assertThat(offer.kept()).containsExactly(1005L, 1002L, 1003L);
        assertThat(tier.copyCount())
                .as("those and the one that was not on offer")
                .isEqualTo(4);
    }

    @Test
    void givenCopiesThatAreUsedWhereTheyLie_whenTheFrontOffers_thenTheStoreHeardAndTheyAreKept() {
        written(1);
        written(2);
        front().use(block(2, false), 1002);
        assertThat(store.used).containsExactly(2L);
        ListedCandidates offer = new ListedCandidates(List.of(1001L, 1002L), new ArrayList<>());
        front().offer(offer);
        assertThat(offer.kept()).containsExactly(1002L);
    }

    @Test
    void givenASpanOfTheDiskThatGoes_whenSomethingElseLiesThere_thenItsOldCopyIsNotRead() {
        long address = written(1);
        diskSide.onReclaim(new ListedCandidates(List.of(address), new ArrayList<>()));
        assertThat(tier.copyCount()).isZero();
        long other = written(2);
        diskSide.onMoved(block(2, false), other, address);
        read(2, address, 9);
        let(false, true);
        assertThat(front().requests).containsExactly("write 1", "write 2", "read 2");
        assertThat(store.reads).containsEntry(9L, Outcome.SUCCESS);
    }

    @Test
    void givenAWriteThatTheFrontHolds_whenItsSpanOnDiskGoes_thenItIsKeptAndItsNewAddressTold() {
        write(1);
        let(true, false);
        long first = ScriptedTier.FIRST_ADDRESS + 1;
        ListedCandidates offer = new ListedCandidates(List.of(first), new ArrayList<>());
        diskSide.onReclaim(offer);
        assertThat(offer.kept()).containsExactly(first);
        diskSide.onMoved(block(1, false), first, 7000L);
        let(false, true);
        assertThat(store.addresses).containsEntry(1L, 7000L);
        read(1, 7000L, 9);
        assertThat(front().requests).containsExactly("write 1", "read 1");
        let(false, true);
    }

    @Test
    void givenAWriteThatTheFrontHolds_whenItCannotBeKept_thenItWasNotWrittenAndItsCopyIsHidden() {
        write(1);
        write(2);
        let(true, false);
        long first = ScriptedTier.FIRST_ADDRESS + 1;
        diskSide.onReclaim(ListedCandidates.withoutRoom(List.of(first)));
        diskSide.onLost(block(2, false), first + 1);
        let(false, true);
        assertThat(store.addresses).containsEntry(1L, -1L).containsEntry(2L, -1L);
        assertThat(tier.copyCount()).isZero();
        assertThat(front().requests).containsExactly("write 1", "write 2", "bury 1", "bury 2");
        let(false, true);
    }

    @Test
    void givenReadsThatTheFrontHolds_whenTheirBlocksMoveOrGo_thenCopiesAreFoundWhereTheyAre() {
        front().fail();
        long address = written(1);
        long other = written(2);
        tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
        read(1, address, 8);
        read(2, other, 9);
        let(true, false);
        diskSide.onMoved(block(1, false), address, 7000L);
        diskSide.onReclaim(ListedCandidates.withoutRoom(List.of(other)));
        let(false, true);
        assertThat(store.reads).containsEntry(8L, Outcome.SUCCESS).containsEntry(9L, Outcome.SUCCESS);
        assertThat(tier.copyCount()).isEqualTo(1);
        read(1, 7000L, 10);
        assertThat(front().requests).containsExactly("write 1", "write 2", "bury 2", "read 1");
        let(false, true);
    }

    @Test
    void givenAFrontThatSomebodyUses_whenClosed_thenTheDiskIsClosedOnceAndTheFrontLater() {
        written(1);
        front().inUse = true;
        assertThatIllegalStateException().isThrownBy(tier::close).withMessage("somebody reads there");
        assertThat(disk.closed).isEqualTo(1);
        tick();
        assertThat(disk.ticksAfterClosing).isZero();
        front().inUse = false;
        tier.close();
        assertThat(front().closed).isEqualTo(1);
        assertThat(disk.closed).isEqualTo(1);
    }

    /// Counts what is logged.
    private static final class Counting extends Handler {
        private final List<String> said = new ArrayList<>();

        @Override
        public void publish(LogRecord logged) {
            said.add(String.valueOf(MessageFormat.format(logged.getMessage(), logged.getParameters())));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    @Test
    void givenAFrontThatFailsWhileSomebodyUsesIt_whenItsReadsAreTold_thenItIsSaidOnceAndTheTierIsIdle() {
        long address = written(1);
        Counting counting = new Counting();
        log.setUseParentHandlers(false);
        log.addHandler(counting);
        try {
            front().inUse = true;
            read(1, address, 9);
            front().fail();
            front().held = true;
            tick();
            assertThat(tier.isIdle()).as("a read is on its way").isFalse();
            let(false, true);
            let(true, false);
            let(true, true);
            assertThat(store.reads).containsEntry(9L, Outcome.SUCCESS);
            assertThat(tier.isIdle()).isTrue();
            tick();
            assertThat(counting.said).hasSize(1).first().asString().contains("the test wants it so");
            front().inUse = false;
            tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
            tick(FrontCacheTier.INITIAL_BACKOFF_NANOS);
            assertThat(fronts).hasSize(2);
        } finally {
            log.removeHandler(counting);
            log.setUseParentHandlers(true);
        }
    }

    @Test
    void givenAFrontThatCannotBeOpened_whenOpened_thenTheDiskIsClosedAndTheCauseThrown() {
        refused = true;
        ScriptedTier[] other = new ScriptedTier[1];
        assertThatIllegalStateException()
                .isThrownBy(() -> new CachedDiskTier(
                        "front",
                        listener -> {
                            other[0] = new ScriptedTier(listener);
                            return other[0];
                        },
                        this::openFront,
                        store,
                        new RetiredTiers()))
                .withMessage("not now");
        assertThat(other[0].held).as("open").isFalse();
    }
}
