package io.kvcache.tiers.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.disk.RegionReclaimer.RegionCandidates;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import io.kvcache.tiers.disk.ScriptedDevice.Fate;
import io.kvcache.tiers.disk.ScriptedDevice.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// How room is made.
final class LogReclaimTest {

    private static final long BYTES = 7L << 20;
    private static final DiskGeometry GEOMETRY = DiskGeometry.of(BYTES);
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(GEOMETRY, 0xABCDEF);

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final ScriptedDevice device = new ScriptedDevice(MemoryDevice.create(storage, 32));
    private final DiskLogHarness rig = new DiskLogHarness(arena);

    @BeforeEach
    void open() {
        rig.openAndSettle(device, CONFIG);
    }

    @AfterEach
    void close() {
        arena.close();
    }

    private void append(int blocks) {
        for (int i = 0; i < blocks; i++) {
            rig.appendAndWait(10_000);
        }
    }

    private void requireAllGood() {
        rig.known.keySet().forEach(rig::read);
        rig.settle();
        assertThat(rig.outcomes.keySet()).containsOnly(TierRead.Outcome.SUCCESS);
    }

    /// A crash could keep the footer and lose the table. Then a batch that nothing but the table leads to would
    /// pass for one that was durable and is damaged, and older regions would be forgotten.
    @Test
    void givenAFullRegion_whenItsTableIsNotDurable_thenItsFooterIsNotWritten() {
        long footer = GEOMETRY.regionOffset(0) + GEOMETRY.regionBytes() - DiskGeometry.PAGE_BYTES;
        Set<Long> written = new HashSet<>();
        device.setPicker((operation, offset) -> {
            if (operation == Operation.WRITE) {
                written.add(offset);
            }
            return operation == Operation.SYNC ? Fate.LATER : Fate.DONE;
        });
        append(90); // 85 fill a region
        for (int i = 0; i < 100; i++) {
            rig.tick();
        }
        assertThat(rig.log().logStats().regions().closing()).isOne();
        assertThat(written).contains(footer - 2L * DiskGeometry.PAGE_BYTES).doesNotContain(footer);
        device.setPicker((operation, offset) -> {
            written.add(offset);
            return Fate.DONE;
        });
        rig.settle();
        assertThat(written).contains(footer);
    }

    @Test
    void givenNothingKept_whenFull_thenOldestRegionsGoFirst() {
        append(1000);
        rig.settle();
        assertThat(rig.known.firstKey()).isGreaterThan(650);
        assertThat(rig.known).hasSize((int) (1001 - rig.known.firstKey()));
        assertThat(rig.log().logStats().reclaimed().dropped()).isEqualTo(rig.known.firstKey() - 1);
        requireAllGood();
    }

    @Test
    void givenSomeKept_whenReclaimed_thenTheyAreMovedAndTheirOldPlacesAreStale() {
        rig.keep = entry -> entry.keyHi() % 10 == 0;
        append(1000);
        rig.settle();
        DiskLogStats stats = rig.log().logStats();
        assertThat(stats.reclaimed().kept()).isGreaterThan(100);
        assertThat(rig.known.keySet()).contains(10L, 20L, 30L);
        requireAllGood();
        int stale = 0;
        for (DiskLogHarness.Known gone : rig.staleBlocks) {
            stale += rig.read(gone.entry().keyHi(), gone) == SubmitResult.GONE ? 1 : 0;
        }
        assertThat(stale).isEqualTo(rig.staleBlocks.size());
        assertThat(rig.log().logStats().reads().stale()).isEqualTo(stale);
    }

    @Test
    void givenFlushedBlocksThatAreKept_whenReclaimedAndOpenedAgain_thenTheyAreStillThere() {
        append(5);
        rig.flush();
        rig.settle();
        rig.keep = entry -> entry.keyHi() <= 5;
        append(1000);
        rig.settle();
        assertThat(rig.durable).containsExactly(1L, 2L, 3L, 4L, 5L);
        rig.openAndSettle(device, CONFIG);
        assertThat(rig.known.keySet()).contains(1L, 2L, 3L, 4L, 5L);
        requireAllGood();
    }

    @Test
    void givenAllWanted_whenReclaimed_thenNoMoreThanTheShareIsKept() {
        rig.keep = _ -> true;
        append(2000);
        rig.settle();
        DiskLogStats.Reclaimed reclaimed = rig.log().logStats().reclaimed();
        assertThat(reclaimed.kept()).isPositive();
        assertThat(reclaimed.dropped()).isGreaterThan(reclaimed.kept());
        assertThat(rig.log().logStats().writeAmplification()).isBetween(1.5, 2.5);
        requireAllGood();
    }

    @Test
    void givenRulesForWhatWasUsed_whenAllIsWanted_thenMoreOfARegionIsKept() {
        double usual = keptOfAll();
        rig.openAndSettle(device, CONFIG.withReclaim(ReclaimConfig.defaults().withMaxKeptPercent()));
        assertThat(keptOfAll()).isBetween(1.2 * usual, 0.8);
        requireAllGood();
    }

    private double keptOfAll() {
        rig.keep = _ -> true;
        append(2000);
        rig.settle();
        DiskLogStats.Reclaimed reclaimed = rig.log().logStats().reclaimed();
        return (double) reclaimed.kept() / (reclaimed.kept() + reclaimed.dropped());
    }

    @Test
    void givenABlockOfMoreThanAnEighthOfARegion_whenWanted_thenItIsNotKept() {
        rig.keep = _ -> true;
        long large = rig.append(140_000);
        append(800);
        rig.settle();
        assertThat(rig.known).doesNotContainKey(large);
    }

    @Test
    void givenARottenBlock_whenWanted_thenItIsLostAndCountedNotCarriedOn() {
        long rotten = rig.append(10_000);
        rig.settle();
        long at = GEOMETRY.regionOffset(0) + DiskGeometry.PAGE_BYTES;
        storage.set(JAVA_BYTE, at, (byte) ~storage.get(JAVA_BYTE, at));
        rig.keep = entry -> entry.keyHi() <= 3;
        append(500);
        rig.settle();
        assertThat(rig.known).doesNotContainKey(rotten).containsKeys(2L, 3L);
        assertThat(rig.log().logStats().reclaimed().lost()).isEqualTo(1);
    }

    @Test
    void givenAReaderInARegion_whenItIsReclaimed_thenItIsNotWrittenOverBeforeTheReadHasEnded() {
        append(10);
        rig.settle();
        long block = GEOMETRY.regionOffset(0) + DiskGeometry.PAGE_BYTES;
        device.setPicker(
                (operation, offset) -> operation == Operation.READ && offset == block ? Fate.LATER : Fate.DONE);
        assertThat(rig.read(1)).isEqualTo(SubmitResult.ACCEPTED);
        append(600);
        for (int i = 0; i < 1000; i++) {
            rig.tick();
        }
        assertThat(rig.known).doesNotContainKey(1L);
        assertThat(rig.log().logStats().regions().freeing()).isEqualTo(1);
        device.completeAll();
        rig.settle();
        assertThat(rig.outcomes.get(TierRead.Outcome.SUCCESS)).isEqualTo(1);
        assertThat(rig.log().logStats().regions().freeing()).isZero();
    }

    @Test
    void givenAFooterThatCannotBeMarked_whenReclaimed_thenTheRegionIsNotUsedAgain() {
        long footer = GEOMETRY.regionOffset(0) + GEOMETRY.regionBytes() - DiskGeometry.PAGE_BYTES;
        append(200);
        rig.settle();
        device.setPicker(
                (operation, offset) -> operation == Operation.WRITE && offset == footer ? Fate.FAILED : Fate.DONE);
        append(600);
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        assertThat(rig.log().logStats().regions().bad()).isEqualTo(1);
        assertThat(rig.known.values()).noneMatch(each -> LogAddress.region(each.address()) == 0);
    }

    @Test
    void givenADamagedTrailer_whenReclaimed_thenTheHeadsTellAndTheOfferSaysSo() {
        append(200);
        rig.settle();
        RegionFooter footer = RegionFooter.read(page(0, GEOMETRY.regionPages() - 1), GEOMETRY.regionPages());
        assertThat(footer).isNotNull();
        page(0, footer.tablePage()).fill((byte) 3);
        rig.offers.clear();
        append(600);
        rig.settle();
        RegionCandidates offer = rig.offers.getFirst();
        assertThat(offer.region()).isZero();
        assertThat(offer.isComplete()).isFalse();
        assertThat(offer.size()).isEqualTo(footer.entries());
        assertThat(rig.offers.get(1).isComplete()).isTrue();
    }

    private MemorySegment page(int region, int page) {
        return storage.asSlice(
                GEOMETRY.regionOffset(region) + (long) page * DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES);
    }

    @Test
    void givenDiscards_whenReclaimed_thenTheBytesAreGivenBackAndTheFooterIsNot() {
        rig.openAndSettle(device, CONFIG.withReclaim(new ReclaimConfig(2, 0, 4096, true)));
        append(600);
        rig.settle();
        int free = -1;
        for (int region = 0; region < GEOMETRY.regions(); region++) {
            RegionFooter footer = RegionFooter.read(page(region, GEOMETRY.regionPages() - 1), GEOMETRY.regionPages());
            boolean marked = footer != null && footer.isFree();
            boolean blank = MetadataCrc.isBlank(
                    storage.asSlice(GEOMETRY.regionOffset(region), GEOMETRY.regionBytes() - DiskGeometry.PAGE_BYTES));
            free = marked && blank ? region : free;
        }
        assertThat(free).as("a region that is free and blank").isNotNegative();
    }

    @Test
    void givenUnlawfulRules_whenMade_thenTheRangeIsNamed() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new ReclaimConfig(1, 0, 4096, false))
                .withMessageContaining("at least 2");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new ReclaimConfig(2, 76, 4096, false))
                .withMessageContaining("0 to 75");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new ReclaimConfig(2, 0, 4000, false))
                .withMessageContaining("4000");
    }
}
