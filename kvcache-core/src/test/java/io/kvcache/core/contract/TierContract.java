package io.kvcache.core.contract;

import static io.kvcache.core.contract.TierBlocks.BLOCKS;
import static io.kvcache.core.contract.TierBlocks.PAGE;
import static io.kvcache.core.contract.TierBlocks.THINGS;
import static io.kvcache.core.contract.TierBlocks.content;
import static io.kvcache.core.contract.TierBlocks.inNamespace;
import static io.kvcache.core.contract.TierBlocks.needle;
import static io.kvcache.core.contract.TierBlocks.pieces;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TierRig.TierKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.Taken;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierBurial;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierRead.Outcome;
import io.kvcache.core.tier.TierState;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What every implementation of [Tier] must do, over blank storage that holds a few MiB at least.
///
/// An implementation's test extends it by a class of one line that hands over a [TierUnderTest.Factory].
public abstract class TierContract extends TierFixture {

    private static final long LONG_NANOS = Long.MAX_VALUE / 2;

    protected TierContract(TierUnderTest.Factory factory) {
        super(factory);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, PAGE - 1, PAGE, PAGE + 1, 65_536, 100_001})
    void givenABlockOfAnySize_whenReadBack_thenItsBytesInWhateverPieces(int bytes) {
        open();
        TierBlock block = block(7, bytes);
        for (boolean split : new boolean[] {false, true}) {
            long place = rig.write(block, pieces(filled(content(7), bytes), split));
            MemorySegment target = blocks.memory(bytes);
            assertThat(rig.read(block, place, pieces(target, !split))).isEqualTo(Outcome.GOOD);
            content(7).require(target.asSlice(0, bytes));
        }
    }

    @Test
    void givenTheLargestBlock_whenReadBack_thenItsBytes() {
        Tier tier = open();
        TierBlock block = block(7, Math.toIntExact(tier.maxBlockBytes()));
        requireReadable(block, write(block));
    }

    @Test
    void givenANamespaceThatTheTierDoesNotKnow_whenWritten_thenLaterUntilItDoes() {
        Tier tier = open();
        List<MemorySegment> pages = List.of(filled(content(1), USUAL_BYTES));
        TierBlock block = block(1, USUAL_BYTES);
        assertThat(tier.write(block, pages, 1)).isEqualTo(Taken.LATER);
        rig.until("the namespace is known", () -> tier.write(block, pages, 2) == Taken.TAKEN);
        rig.until("the write ends", () -> rig.places.containsKey(2L));
        assertThat(rig.places).as("of what was not taken nothing is told").doesNotContainKey(1L);
    }

    @Test
    void givenAFlush_whenReopened_thenAllIsToldNewestFirstAsItWas() {
        open();
        List<TierBlock> written = new ArrayList<>();
        for (long key = 10; key < 20; key++) {
            written.add(block(key, USUAL_BYTES + (int) key));
            write(written.getLast());
        }
        rig.flush();
        reopen();
        int id = rig.namespaceId(BLOCKS);
        assertThat(rig.recovered)
                .isEqualTo(written.reversed().stream()
                        .map(block -> inNamespace(block, id))
                        .toList());
        for (TierBlock block : rig.recovered) {
            requireReadable(block, rig.recoveredAt(block));
        }
    }

    @Test
    void givenAStoreThatDoesNotKnowANamespace_whenReopened_thenItIsAskedForItsNumber() {
        open();
        write(block(1, USUAL_BYTES));
        rig.flush();
        close();
        rig = new TierRig(subject.waitNanos());
        open = true;
        rig.openAndRecover(subject);
        assertThat(rig.namespaces).containsExactly(BLOCKS);
        assertThat(rig.recovered.getFirst().namespaceId()).isZero();
    }

    @Test
    void givenAStoreThatRefusesANamespace_whenReopened_thenNothingOfItIsTold() {
        open();
        write(block(1, USUAL_BYTES));
        writeObject(2, 1, USUAL_BYTES);
        rig.flush();
        close();
        rig = new TierRig(subject.waitNanos(), THINGS) {
            @Override
            public int namespaceId(Namespace namespace) {
                return namespace.equals(THINGS) ? 0 : -1;
            }
        };
        open = true;
        rig.openAndRecover(subject);
        assertThat(rig.recovered).extracting(TierBlock::keyHi).containsExactly(2L);
    }

    @Test
    void givenTwoVersionsOfOneKey_whenReopened_thenTheNewerIsToldFirst() {
        open();
        writeObject(5, 1, 9_000);
        writeObject(5, 2, 7_000);
        rig.flush();
        reopen();
        TierBlock first = rig.recovered.getFirst();
        assertThat(first).isEqualTo(object(5, 2, 7_000));
        Outcome outcome = read(first, rig.recoveredAt(first), content(5).version(2));
        assertThat(outcome).isEqualTo(Outcome.GOOD);
    }

    @Test
    void givenABurialAndAFlush_whenReopened_thenItIsToldBeforeWhatItBuries() {
        open();
        rig.bury(TierBurial.of(writeObject(5, 1, 9_000)));
        writeObject(6, 1, 9_000);
        rig.flush();
        reopen();
        assertThat(rig.recovered).as("without what is buried by then").containsExactly(object(6, 1, 9_000));
    }

    @Test
    void givenTheBurialOfANamespace_whenReopened_thenOnlyWhatWasWrittenAfterItIsTold() {
        open();
        TierBlock buried = writeObject(5, 1, 9_000);
        writeObject(7, 1, 9_000);
        write(block(1, USUAL_BYTES));
        rig.bury(TierBurial.of(buried.namespaceId()));
        writeObject(6, 1, 9_000);
        rig.flush();
        reopen();
        assertThat(rig.recovered).extracting(TierBlock::keyHi).containsExactlyInAnyOrder(6L, 1L);
    }

    @Test
    void givenABurialAndAnotherWriteAfterIt_whenReopened_thenThatOneCounts() {
        open();
        rig.bury(TierBurial.of(writeObject(5, 1, 9_000)));
        writeObject(5, 2, 8_000);
        rig.flush();
        reopen();
        assertThat(rig.recovered.getFirst()).isEqualTo(object(5, 2, 8_000));
    }

    /// A tier may notice it at opening already, and not tell of the block. One of the largest behind the others makes
    /// a tier of regions close the one that is damaged, so that it does not look at every block there.
    @Test
    void givenBytesThatWereChanged_whenRead_thenCorruptAndNeverWrong() {
        Tier tier = open();
        for (long key = 10; key < 14; key++) {
            write(block(key, USUAL_BYTES));
        }
        write(block(14, Math.toIntExact(tier.maxBlockBytes())));
        rig.flush();
        close();
        assertThat(subject.damage(needle(12))).isPositive();
        open();
        assertThat(rig.recovered).extracting(TierBlock::keyHi).contains(10L, 11L, 13L, 14L);
        for (TierBlock block : rig.recovered) {
            Outcome outcome = read(block, rig.recoveredAt(block), content(block.keyHi()));
            assertThat(outcome).isEqualTo(block.keyHi() == 12 ? Outcome.CORRUPT : Outcome.GOOD);
        }
    }

    @Test
    void givenAPlaceThatWasReclaimed_whenRead_thenGone() {
        Tier tier = open();
        TierBlock first = block(1, USUAL_BYTES);
        long place = write(first);
        writeUntilReclaimed(place);
        requireGone(tier, first, place);
    }

    private void requireGone(Tier tier, TierBlock block, long place) {
        List<MemorySegment> pages = List.of(blocks.memory(block.bytes()));
        TierRead read = new TierRead(place, block.bytes(), block.checksum(), pages, rig.tag());
        assertThat(tier.read(read)).isEqualTo(Taken.GONE);
    }

    /// Writes other blocks until the span of a place was offered, and nothing is on its way.
    private void writeUntilReclaimed(long place) {
        List<MemorySegment> pages = List.of(filled(content(1000), USUAL_BYTES));
        TierBlock other = block(1000, USUAL_BYTES);
        while (!rig.offered.contains(place)) {
            assertThat(rig.write(other, pages)).isNotNegative();
        }
        rig.flush();
        rig.until("nothing is on its way", rig::idle);
    }

    @Test
    void givenAnOffer_whenABlockIsKept_thenItMovesAndIsTold() {
        Tier tier = open();
        TierBlock kept = block(1, USUAL_BYTES);
        TierBlock left = block(2, USUAL_BYTES);
        long keptAt = write(kept);
        long leftAt = write(left);
        rig.keep = TierKey.of(kept)::equals;
        writeUntilReclaimed(keptAt);
        assertThat(rig.moved).containsKey(keptAt).doesNotContainKey(leftAt);
        assertThat(rig.lost).isEmpty();
        requireReadable(kept, rig.follow(keptAt));
        requireGone(tier, kept, keptAt);
        reopen();
        assertThat(rig.recoveredAt).containsKey(TierKey.of(kept));
    }

    @Test
    void givenManyTimesWhatItHolds_whenWritten_thenItGoesOnTaking() {
        Tier tier = open();
        TierBlock block = block(1, USUAL_BYTES);
        List<MemorySegment> pages = List.of(filled(content(1), USUAL_BYTES));
        long rounds = 3 * tier.stats().capacityBytes() / USUAL_BYTES;
        long last = -1;
        for (long i = 0; i < rounds; i++) {
            last = rig.write(block, pages);
            assertThat(last).isNotNegative();
        }
        requireReadable(block, last);
    }

    @Test
    void givenAStop_whenAsked_thenItTakesNothingAndTellsAllThatItTook() {
        Tier tier = open();
        long place = write(block(1, USUAL_BYTES));
        List<Long> begun = new ArrayList<>();
        for (long key = 10; key < 20; key++) {
            begun.add(rig.begin(block(key, USUAL_BYTES), List.of(filled(content(key), USUAL_BYTES))));
        }
        tier.stop();
        assertThat(tier.state()).isEqualTo(TierState.STOPPED);
        requireRefusal(tier, place);
        rig.until("nothing is on its way", rig::idle);
        assertThat(rig.places.keySet()).containsAll(begun);
    }

    private void requireRefusal(Tier tier, long place) {
        TierBlock block = block(1, USUAL_BYTES);
        List<MemorySegment> pages = List.of(filled(content(1), USUAL_BYTES));
        assertThat(tier.write(block, pages, 1_000_001)).isEqualTo(Taken.REFUSED);
        assertThat(tier.read(new TierRead(place, block.bytes(), block.checksum(), pages, 1_000_002)))
                .isEqualTo(Taken.REFUSED);
        assertThat(tier.flush(1_000_003)).isEqualTo(Taken.REFUSED);
        rig.tick();
        assertThat(rig.places).doesNotContainKey(1_000_001L);
        assertThat(rig.reads).doesNotContainKey(1_000_002L);
        assertThat(rig.flushes).doesNotContainKey(1_000_003L);
    }

    @Test
    void givenStorageOfSomethingElse_whenOpened_thenRefusedWithACauseAndLeftAlone() {
        subject.estrange();
        long before = subject.checksum();
        Tier tier = begin().open(subject);
        assertThat(tier.state()).isEqualTo(TierState.REFUSED);
        assertThat(tier.state().reads()).isFalse();
        assertThat(tier.cause()).isNotEmpty();
        assertThat(tier.flush(1)).isEqualTo(Taken.REFUSED);
        close();
        assertThat(subject.checksum()).isEqualTo(before);
    }

    @Test
    void givenALongTick_whenAnotherThreadWakesTheTier_thenTheTickEnds() throws InterruptedException {
        Tier tier = open();
        // Before there is a waker: ticks that do not wait let the rig's time run ahead of the device.
        rig.begin(block(1, USUAL_BYTES), List.of(filled(content(1), USUAL_BYTES)));
        AtomicBoolean over = new AtomicBoolean();
        Thread waker = Thread.ofPlatform().start(() -> {
            while (!over.get()) {
                tier.wake();
                Thread.onSpinWait();
            }
        });
        for (int i = 0; i < 100; i++) {
            rig.tick(LONG_NANOS);
        }
        over.set(true);
        waker.join();
        rig.until("the write ends", () -> !rig.places.isEmpty());
    }

    @Test
    void givenWork_whenStatisticsAreAsked_thenTheyCountIt() {
        Tier tier = open();
        TierBlock block = block(1, USUAL_BYTES);
        long place = write(block);
        requireReadable(block, place);
        assertThat(read(object(1, 3, USUAL_BYTES), place, content(1))).isEqualTo(Outcome.CORRUPT);
        assertThat(tier.stats().capacityBytes()).isPositive();
        rig.tick();
        assertThat(tier.stats().blocksWritten()).isEqualTo(1);
        assertThat(tier.stats().blockBytesWritten()).isEqualTo(USUAL_BYTES);
        assertThat(tier.stats().allBytesWritten()).isGreaterThan(USUAL_BYTES);
        assertThat(tier.stats().readsGood()).isEqualTo(1);
        assertThat(tier.stats().checksumErrors()).isEqualTo(1);
        assertThat(tier.name()).isNotEmpty();
    }
}
