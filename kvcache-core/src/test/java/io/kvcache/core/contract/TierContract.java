package io.kvcache.core.contract;

import static io.kvcache.core.contract.TierTestBlocks.PAGE;
import static io.kvcache.core.contract.TierTestBlocks.content;
import static io.kvcache.core.contract.TierTestBlocks.pieces;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TierDriver.TierKey;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
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

/// Contract of every implementation of [Tier], over blank storage that holds a few MiB at least. That of a tier
/// which keeps its blocks continues in [DurableTierContract].
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
            assertThat(rig.read(block, place, pieces(target, !split))).isEqualTo(Outcome.SUCCESS);
            content(7).requireEqual(target.asSlice(0, bytes));
        }
    }

    @Test
    void givenTheLargestBlock_whenReadBack_thenItsBytes() {
        Tier tier = open();
        TierBlock block = block(7, Math.toIntExact(tier.maxBlockBytes()));
        requireReadable(block, write(block));
    }

    @Test
    void givenAPlaceThatWasReclaimed_whenRead_thenGone() {
        Tier tier = open();
        TierBlock first = block(1, DEFAULT_BYTES);
        long place = write(first);
        writeUntilReclaimed(place);
        requireGone(tier, first, place);
    }

    final void requireGone(Tier tier, TierBlock block, long place) {
        List<MemorySegment> pages = List.of(blocks.memory(block.bytes()));
        TierRead read = new TierRead(block, place, pages, rig.tag());
        assertThat(tier.read(read)).isEqualTo(SubmitResult.GONE);
    }

    /// Writes other blocks until the span of a place was offered, and nothing is on its way.
    final void writeUntilReclaimed(long place) {
        List<MemorySegment> pages = List.of(filled(content(1000), DEFAULT_BYTES));
        TierBlock other = block(1000, DEFAULT_BYTES);
        while (!rig.offered.contains(place)) {
            assertThat(rig.write(other, pages)).isNotNegative();
        }
        rig.awaitTrue("nothing is on its way", rig::idle);
    }

    @Test
    void givenAnOffer_whenABlockIsKept_thenItMovesAndIsTold() {
        Tier tier = open();
        TierBlock kept = block(1, DEFAULT_BYTES);
        TierBlock left = block(2, DEFAULT_BYTES);
        long keptAt = write(kept);
        long leftAt = write(left);
        rig.keep = TierKey.of(kept)::equals;
        writeUntilReclaimed(keptAt);
        assertThat(rig.moved).containsKey(keptAt).doesNotContainKey(leftAt);
        assertThat(rig.lost).isEmpty();
        requireReadable(kept, rig.follow(keptAt));
        requireGone(tier, kept, keptAt);
    }

    @Test
    void givenManyTimesWhatItHolds_whenWritten_thenItGoesOnTaking() {
        Tier tier = open();
        TierBlock block = block(1, DEFAULT_BYTES);
        List<MemorySegment> pages = List.of(filled(content(1), DEFAULT_BYTES));
        long rounds = 3 * tier.stats().capacityBytes() / DEFAULT_BYTES;
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
        long place = write(block(1, DEFAULT_BYTES));
        List<Long> begun = new ArrayList<>();
        for (long key = 10; key < 20; key++) {
            begun.add(rig.begin(block(key, DEFAULT_BYTES), List.of(filled(content(key), DEFAULT_BYTES))));
        }
        tier.stop();
        assertThat(tier.state()).isEqualTo(TierState.STOPPED);
        requireRefusal(tier, place);
        rig.awaitTrue("nothing is on its way", rig::idle);
        assertThat(rig.places.keySet()).containsAll(begun);
    }

    private void requireRefusal(Tier tier, long place) {
        TierBlock block = block(1, DEFAULT_BYTES);
        List<MemorySegment> pages = List.of(filled(content(1), DEFAULT_BYTES));
        assertThat(tier.write(block, pages, 1_000_001)).isEqualTo(SubmitResult.REJECTED);
        assertThat(tier.read(new TierRead(block, place, pages, 1_000_002))).isEqualTo(SubmitResult.REJECTED);
        assertThat(tier.flush(1_000_003)).isEqualTo(SubmitResult.REJECTED);
        rig.tick();
        assertThat(rig.places).doesNotContainKey(1_000_001L);
        assertThat(rig.reads).doesNotContainKey(1_000_002L);
        assertThat(rig.flushes).doesNotContainKey(1_000_003L);
    }

    @Test
    void givenALongTick_whenAnotherThreadWakesTheTier_thenTheTickEnds() throws InterruptedException {
        Tier tier = open();
        // Before there is a waker: ticks that do not wait let the rig's time run ahead of the device.
        rig.begin(block(1, DEFAULT_BYTES), List.of(filled(content(1), DEFAULT_BYTES)));
        AtomicBoolean over = new AtomicBoolean();
        Thread waker = Thread.ofPlatform().start(() -> {
            while (!over.get()) {
                tier.wake();
                Pause.briefly();
            }
        });
        for (int i = 0; i < 100; i++) {
            rig.tick(LONG_NANOS);
        }
        over.set(true);
        waker.join();
        rig.awaitTrue("the write ends", () -> !rig.places.isEmpty());
    }

    @Test
    void givenWork_whenStatisticsAreAsked_thenTheyCountIt() {
        Tier tier = open();
        TierBlock block = block(1, DEFAULT_BYTES);
        long place = write(block);
        requireReadable(block, place);
        assertThat(read(object(1, 3, DEFAULT_BYTES), place, content(1))).isEqualTo(Outcome.CORRUPT);
        assertThat(tier.stats().capacityBytes()).isPositive();
        rig.tick();
        assertThat(tier.stats().blocksWritten()).isEqualTo(1);
        assertThat(tier.stats().blockBytesWritten()).isEqualTo(DEFAULT_BYTES);
        assertThat(tier.stats().allBytesWritten()).isGreaterThan(DEFAULT_BYTES);
        assertThat(tier.stats().readsGood()).isEqualTo(1);
        assertThat(tier.stats().checksumErrors()).isEqualTo(1);
        assertThat(tier.name()).isNotEmpty();
    }
}
