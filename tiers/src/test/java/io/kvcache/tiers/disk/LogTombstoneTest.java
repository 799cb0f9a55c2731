package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.ScriptedDevice.Fate;
import io.kvcache.tiers.disk.ScriptedDevice.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Dropped or replaced entries do not come back.
final class LogTombstoneTest {

    private static final long BYTES = 7L << 20;
    private static final DiskGeometry GEOMETRY = DiskGeometry.of(BYTES);
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(GEOMETRY, 0xABCDEF);
    private static final int BLOCK_BYTES = 10_000;

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

    private void reopen() {
        rig.openAndSettle(device, CONFIG);
    }

    private void append(int blocks) {
        for (int i = 0; i < blocks; i++) {
            rig.appendAndWait(BLOCK_BYTES);
        }
    }

    private void bury(long key) {
        while (rig.appendTombstone(key) == SubmitResult.RETRY) {
            rig.tick();
        }
    }

    @Test
    void givenABuriedBlock_whenOpenedAgain_thenItDoesNotCount() {
        append(3);
        bury(2);
        rig.flush();
        rig.settle();
        assertThat(rig.flushes).containsExactly(true);
        reopen();
        assertThat(rig.known.keySet()).containsExactly(1L, 3L);
        assertThat(rig.log().logStats().recovered()).isEqualTo(new DiskLogStats.Recovered(3, 1, 0, 0, 0, 0));
    }

    @Test
    void givenABuriedBlock_whenItIsAppendedAnew_thenItCountsAgain() {
        append(3);
        rig.settle();
        bury(2);
        assertThat(rig.appendAgain(2, BLOCK_BYTES)).isTrue();
        rig.settle();
        reopen();
        assertThat(rig.known.keySet()).containsExactly(1L, 2L, 3L);
        assertThat(rig.knownBlock(2).entry().depth()).as("version").isEqualTo(2);
    }

    @Test
    void givenABuriedNamespace_whenOpenedAgain_thenOnlyWhatCameLaterCounts() {
        append(300);
        while (rig.appendNamespaceTombstone() == SubmitResult.RETRY) {
            rig.tick();
        }
        append(5);
        rig.settle();
        reopen();
        assertThat(rig.known.keySet()).containsExactly(301L, 302L, 303L, 304L, 305L);
    }

    @Test
    void givenATombstoneOfAnotherPart_whenCompared_thenItReplacesNothing() {
        DiskEntry block = new DiskEntry(1, 2, 0, 0, 3 << 16 | 4 << 8, 0, 0, 100, 0, StoredLayout.PLAIN, 0);
        DiskEntry object =
                new DiskEntry(1, 2, 0, 0, 3 << 16 | 4 << 8 | DiskEntry.OBJECT, 0, 0, 100, 0, StoredLayout.PLAIN, 0);
        DiskEntry otherPart = new DiskEntry(1, 2, 0, 0, 3 << 16 | 5 << 8, 0, 0, 100, 0, StoredLayout.PLAIN, 0);
        assertThat(block.tombstone().replaces(block)).isTrue();
        assertThat(block.tombstone().replaces(object)).isTrue();
        assertThat(block.tombstone().replaces(otherPart)).isFalse();
        assertThat(DiskEntry.tombstone(3).replaces(otherPart)).isTrue();
        assertThat(DiskEntry.tombstone(4).replaces(otherPart)).isFalse();
    }

    @Test
    void givenTombstones_whenWritten_thenTheyTakeAPageTogether() {
        append(50);
        rig.settle();
        long before = headBytes();
        for (long key = 1; key <= 50; key++) {
            bury(key);
        }
        rig.settle();
        assertThat(headBytes() - before).isEqualTo(DiskGeometry.PAGE_BYTES);
        reopen();
        assertThat(rig.known).isEmpty();
    }

    private long headBytes() {
        return rig.log().logStats().writtenBytes().getOrDefault(WriteKind.HEAD, 0L);
    }

    @Test
    void givenMoreTombstonesThanATableHolds_whenBuried_thenTheNextRegionTakesThem() {
        int rows = RegionTrailer.maxEntries(GEOMETRY.regionPages());
        append(1);
        rig.settle();
        for (int i = 0; i < rows + 100; i++) {
            bury(1);
        }
        rig.settle();
        assertThat(rig.log().logStats().regions().closed()).isPositive();
        reopen();
        assertThat(rig.log().logStats().recovered().tombstones()).isEqualTo(rows + 100);
        assertThat(rig.known).isEmpty();
    }

    /// @param appended is so much that the tombstone has to wait until there is room, or not
    /// @param lost whether the block is not written again
    @ParameterizedTest
    @CsvSource({"400, 0", "300, 1"})
    void givenAKeptBlock_whenItIsBuriedBeforeItIsWrittenAgain_thenItIsNotWrittenBehindItsTombstone(
            int appended, int lost) {
        append(1);
        rig.settle();
        rig.keep = entry -> entry.keyHi() == 1;
        long block = GEOMETRY.regionOffset(0) + DiskGeometry.PAGE_BYTES;
        device.setPicker(
                (operation, offset) -> operation == Operation.READ && offset == block ? Fate.LATER : Fate.DONE);
        append(appended);
        for (int i = 0; i < 1000; i++) {
            rig.tick();
        }
        assertThat(rig.log().logStats().regions().reclaiming()).isEqualTo(1);
        bury(1);
        for (int i = 0; i < 5; i++) {
            rig.tick();
        }
        device.completeAll();
        rig.settle();
        assertThat(rig.log().logStats().reclaimed().lost()).isEqualTo(lost);
        reopen();
        assertThat(rig.known).doesNotContainKey(1L);
    }

    @Test
    void givenAnOlderRegionThatCannotBeMarked_whenTheTombstonesRegionIsReclaimed_thenNothingComesBack() {
        long footer = GEOMETRY.regionOffset(0) + GEOMETRY.regionBytes() - DiskGeometry.PAGE_BYTES;
        append(200);
        bury(1);
        rig.settle();
        device.setPicker(
                (operation, offset) -> operation == Operation.WRITE && offset == footer ? Fate.FAILED : Fate.DONE);
        append(1000);
        rig.settle();
        assertThat(rig.log().logStats().regions().bad()).isEqualTo(1);
        long firstLeft = rig.known.firstKey();
        rig.open(device, CONFIG);
        rig.settle();
        assertThat(rig.known.firstKey()).isEqualTo(firstLeft);
        assertThat(rig.reportedEntries).allMatch(entry -> entry.keyHi() >= firstLeft);
    }

    @Test
    void givenABlockToBuryOrATombstoneToAppend_whenAsked_thenThatIsABug() {
        append(1);
        rig.settle();
        DiskEntry block = rig.knownBlock(1).entry();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rig.log().append(block.tombstone(), List.of(), 1))
                .withMessageContaining("tombstones of 0 are buried");
        assertThatIllegalArgumentException().isThrownBy(() -> rig.log().appendTombstone(block, 1));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rig.log().appendTombstone(DiskEntry.tombstone(7), 1))
                .withMessageContaining("namespace below 1");
    }
}
