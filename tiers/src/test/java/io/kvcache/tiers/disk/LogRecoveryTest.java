package io.kvcache.tiers.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Entries that a log finds again at opening.
final class LogRecoveryTest {

    private static final long BYTES = 7L << 20;
    private static final DiskGeometry GEOMETRY = DiskGeometry.of(BYTES);
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(GEOMETRY, 0xABCDEF);

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final DiskLogHarness rig = new DiskLogHarness(arena);

    @AfterEach
    void close() {
        arena.close();
    }

    private BlockDevice device() {
        return MemoryDevice.create(storage, 32);
    }

    private void reopen() {
        rig.openAndSettle(device(), CONFIG);
    }

    /// Appends so many blocks as a batch of their own.
    private void batch(int blocks) {
        append(blocks, 10_000);
    }

    private void append(int blocks, int bytes) {
        for (int i = 0; i < blocks; i++) {
            rig.appendAndWait(bytes);
        }
        rig.settle();
    }

    private MemorySegment page(int region, int page) {
        return storage.asSlice(
                GEOMETRY.regionOffset(region) + (long) page * DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES);
    }

    private MemorySegment footer(int region) {
        return page(region, GEOMETRY.regionPages() - 1);
    }

    private static void flip(MemorySegment page, long at) {
        page.set(JAVA_BYTE, at, (byte) ~page.get(JAVA_BYTE, at));
    }

    private void requireAllGood() {
        rig.known.keySet().forEach(rig::read);
        rig.settle();
        assertThat(rig.outcomes.keySet()).containsOnly(TierRead.Outcome.SUCCESS);
    }

    @Test
    void givenAnOpenRegion_whenOpenedAgain_thenItsBatchesAreFoundAndItGetsItsTrailer() {
        reopen();
        batch(3);
        batch(4);
        assertThat(RegionFooter.read(footer(0), GEOMETRY.regionPages())).isNull();
        reopen();
        assertThat(rig.known).hasSize(7);
        requireAllGood();
        RegionFooter footer = RegionFooter.read(footer(0), GEOMETRY.regionPages());
        assertThat(footer).isNotNull();
        assertThat(footer.entries()).isEqualTo(7);
    }

    @Test
    void givenAnOpenRegion_whenOpenedAgain_thenNothingIsAddedToIt() {
        reopen();
        batch(3);
        reopen();
        batch(2);
        assertThat(rig.known.values().stream().map(each -> LogAddress.region(each.address())))
                .containsExactly(0, 0, 0, 1, 1);
    }

    @Test
    void givenATornHead_whenOpenedAgain_thenTheScanOfItsRegionEndsThere() {
        reopen();
        batch(3);
        batch(4);
        batch(5);
        flip(page(0, 1 + 3 * 3), 500);
        reopen();
        assertThat(rig.known.keySet()).containsExactly(1L, 2L, 3L);
    }

    @Test
    void givenATornBlockInAnOpenRegion_whenOpenedAgain_thenItIsNotTold() {
        reopen();
        batch(3);
        flip(page(0, 1 + 3), 77);
        reopen();
        assertThat(rig.known.keySet()).containsExactly(1L, 3L);
        requireAllGood();
    }

    @Test
    void givenAClosedRegion_whenItsTableIsDamaged_thenItsHeadsTell() {
        reopen();
        append(100, 10_000);
        RegionFooter footer = RegionFooter.read(footer(0), GEOMETRY.regionPages());
        assertThat(footer).isNotNull();
        flip(page(0, footer.tablePage()), 64);
        reopen();
        assertThat(rig.known).hasSize(100);
        requireAllGood();
    }

    @Test
    void givenAClosedRegion_whenItsFooterIsDamaged_thenItsHeadsTellAndItIsWrittenAnew() {
        reopen();
        append(100, 10_000);
        flip(footer(0), 20);
        reopen();
        assertThat(rig.known).hasSize(100);
        requireAllGood();
        assertThat(RegionFooter.read(footer(0), GEOMETRY.regionPages())).isNotNull();
    }

    @Test
    void givenAReopenedRegion_whenOpenedAgain_thenNothingOfItsEarlierLifeIsTold() {
        reopen();
        append(500, 10_000);
        int open = LogAddress.region(rig.known.lastEntry().getValue().address());
        assertThat(rig.log().epoch(rig.known.lastEntry().getValue().address()) & 0xFF)
                .as("a second life")
                .isGreaterThan(5);
        TreeSet<Long> before = new TreeSet<>(rig.known.keySet());
        flip(page(open, 0), 99);
        reopen();
        assertThat(rig.known.values()).noneMatch(each -> LogAddress.region(each.address()) == open);
        assertThat(before).containsAll(rig.known.keySet());
    }

    @Test
    void givenAFreeRegionWithAllOfItsOldBlocks_whenOpenedAgain_thenNoneIsTold() {
        reopen();
        append(400, 10_000);
        TreeSet<Long> before = new TreeSet<>(rig.known.keySet());
        assertThat(rig.log().logStats().regions().free()).isPositive();
        reopen();
        reopen();
        assertThat(rig.known.keySet()).isEqualTo(before);
    }

    @Test
    void givenAFooterThatCannotBeBelieved_whenTheRegionHoldsNothing_thenItIsMarkedBeforeItIsUsed() {
        footer(2).fill((byte) 0x55);
        reopen();
        assertThat(RegionFooter.read(footer(2), GEOMETRY.regionPages())).matches(RegionFooter::isFree);
        assertThat(rig.log().logStats().regions().free()).isEqualTo(GEOMETRY.regions());
    }

    @Test
    void givenTwoOpenings_whenRegionsAreOpened_thenLivesOfTheSecondAreAboveAllOfTheFirst() {
        reopen();
        batch(1);
        long first = rig.log().epoch(rig.known.lastEntry().getValue().address());
        page(0, 0).fill((byte) 0);
        reopen();
        batch(1);
        assertThat(rig.log().epoch(rig.known.lastEntry().getValue().address())).isGreaterThan(first);
    }

    @Test
    void givenLittleWorkATick_whenRecovering_thenWhatIsToldCanBeReadAndNewBlocksAreTaken() {
        reopen();
        append(100, 10_000);
        LogLimits slow = new LogLimits(100, 100, 1 << 20, 1, 8, 1_000_000_000);
        rig.open(device(), CONFIG.withLimits(slow));
        int reads = 0;
        while (rig.log().isRecovering()) {
            int before = rig.known.size();
            rig.tick();
            assertThat(rig.known.size() - before).isLessThanOrEqualTo(1);
            if (!rig.known.isEmpty() && rig.read(rig.known.lastKey()) == SubmitResult.ACCEPTED) {
                reads++;
            }
        }
        rig.settle();
        assertThat(rig.known).hasSize(100);
        assertThat(rig.outcomes.get(TierRead.Outcome.SUCCESS)).isEqualTo(reads).isGreaterThan(90);
    }

    @Test
    void givenOneKeyTwice_whenOpenedAgain_thenTheLaterIsToldFirst() {
        reopen();
        for (int i = 0; i < 120; i++) {
            batch(1);
            rig.appendAgain(1, 10_000);
            rig.settle();
        }
        reopen();
        List<Integer> depths = rig.reportedEntries.stream()
                .filter(each -> each.keyHi() == 1)
                .map(DiskEntry::depth)
                .toList();
        assertThat(depths).hasSizeGreaterThan(50).isSortedAccordingTo(Comparator.reverseOrder());
        assertThat(rig.knownBlock(1L).entry().depth()).isEqualTo(120);
    }
}
