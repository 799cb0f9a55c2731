package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.options.OnIncompatible;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Openings and audits of a log whose durable metadata was damaged.
final class LogMetadataLossTest {

    private static final long BYTES = 10L << 20;
    private static final DiskGeometry GEOMETRY = DiskGeometry.of(BYTES);
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(GEOMETRY, 0xABCDEF);

    /// Three pages each.
    private static final int BLOCK_BYTES = 10_000;

    private static final int BLOCK_PAGES = 3;
    private static final int DAMAGED_PAGES = 8;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final DiskLogHarness rig = new DiskLogHarness(arena);

    @BeforeEach
    void open() {
        reopen();
    }

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

    /// Appends so many blocks as a batch of their own, durably; answers where the next batch begins.
    private int batch(int page, int blocks) {
        for (int i = 0; i < blocks; i++) {
            rig.appendAndWait(BLOCK_BYTES);
        }
        flush();
        return page + 1 + blocks * BLOCK_PAGES;
    }

    private void bury(long from, long to) {
        for (long key = from; key <= to; key++) {
            while (rig.appendTombstone(key) == SubmitResult.RETRY) {
                rig.tick();
            }
        }
        flush();
    }

    private void flush() {
        rig.flushes.clear();
        assertThat(rig.flush()).isEqualTo(SubmitResult.ACCEPTED);
        rig.settle();
        assertThat(rig.flushes).containsExactly(true);
    }

    private void zero(int region, int page, int pages) {
        rig.forgetPromises();
        storage.asSlice(
                        GEOMETRY.regionOffset(region) + (long) page * DiskGeometry.PAGE_BYTES,
                        (long) pages * DiskGeometry.PAGE_BYTES)
                .fill((byte) 0);
    }

    private AuditReport audit() {
        return LogAudit.run(device(), LogAudit.Scope.BLOCKS, (_, _) -> {});
    }

    @Test
    void givenTombstonesThatWereFlushed_whenTheirHeadsAreZeroed_thenWhatTheyBuriedStaysGone() {
        int tombstones = batch(0, 20);
        bury(1, 19);
        zero(0, tombstones, DAMAGED_PAGES);

        AuditReport report = audit();
        assertThat(report.isIntact()).isFalse();
        assertThat(report.lost()).isEqualTo(19);
        assertThat(report.count(RegionState.FORGOTTEN)).isOne();

        reopen();
        assertThat(rig.known).isEmpty();
        assertThat(rig.log().logStats().recovered().lost()).isEqualTo(19);
        assertThat(rig.log().logStats().recovered().discardedRegions()).isOne();
        long later = rig.appendAndWait(BLOCK_BYTES);
        flush();
        assertThat(audit().isIntact()).isTrue();
        reopen();
        assertThat(rig.known).containsOnlyKeys(later);
        assertThat(rig.log().logStats().recovered().lost()).isZero();
    }

    @Test
    void givenTombstonesInAClosedRegion_whenItsTableAndTheirHeadAreDamaged_thenOlderRegionsAreForgotten() {
        for (int i = 0; i < 90; i++) { // 85 fill a region
            rig.appendAndWait(BLOCK_BYTES);
            rig.settle();
        }
        bury(1, 80);
        for (int i = 0; i < 90; i++) {
            rig.appendAndWait(BLOCK_BYTES);
            rig.settle();
        }
        flush();
        int last = GEOMETRY.regionPages() - 1;
        zero(1, last - 1, 1);
        zero(1, 0, 120);
        reopen();
        assertThat(rig.log().logStats().recovered().discardedRegions()).isEqualTo(2);
        assertThat(rig.known.keySet()).isNotEmpty().allMatch(key -> key > 90);
        reopen();
        assertThat(rig.known.keySet()).isNotEmpty().allMatch(key -> key > 90);
        assertThat(audit().isIntact()).isTrue();
    }

    @Test
    void givenTombstonesInAClosedRegion_whenItsFooterAndFirstHeadAreDamaged_thenWhatTheyBuriedStaysGone() {
        fillRegion();
        bury(1, 80);
        fillRegion();
        fillRegion();
        zero(1, 0, 1);
        zero(1, GEOMETRY.regionPages() - 1, 1);

        AuditReport report = audit();
        assertThat(report.missingRegions()).isOne();
        assertThat(report.discardedRegions()).isOne();
        assertThat(report.isIntact()).isFalse();

        reopen();
        assertThat(rig.log().logStats().recovered().missingRegions()).isOne();
        assertThat(rig.log().logStats().recovered().discardedRegions()).isOne();
        assertThat(rig.known.keySet()).isNotEmpty().allMatch(key -> key > 90);
        reopen();
        assertThat(rig.log().logStats().recovered().missingRegions()).isZero();
        assertThat(rig.known.keySet()).isNotEmpty().allMatch(key -> key > 90);
        assertThat(audit().isIntact()).isTrue();
    }

    @Test
    void givenAClosedRegionOfBlocksAlone_whenItsFooterAndFirstHeadAreDamaged_thenTheLossIsSaidAndOlderOnesAreThere() {
        fillRegion();
        fillRegion();
        fillRegion();
        zero(1, 0, 1);
        zero(1, GEOMETRY.regionPages() - 1, 1);
        assertThat(audit().missingRegions()).isOne();
        assertThat(audit().isIntact()).isFalse();
        reopen();
        assertThat(rig.log().logStats().recovered().missingRegions()).isOne();
        assertThat(rig.log().logStats().recovered().discardedRegions()).isZero();
        assertThat(rig.known).containsKey(1L);
    }

    private void fillRegion() {
        for (int i = 0; i < 90; i++) { // 85 fill a region
            rig.appendAndWait(BLOCK_BYTES);
            rig.settle();
        }
        flush();
    }

    @Test
    void givenBlocksAlone_whenAHeadIsZeroed_thenTheOthersAreFoundAndTheLossIsSaid() {
        int second = batch(0, 3);
        batch(second, 2);
        zero(0, second, 1);
        assertThat(audit().lost()).isEqualTo(2);
        reopen();
        assertThat(rig.known).containsOnlyKeys(1L, 2L, 3L);
        assertThat(rig.log().logStats().recovered().lost()).isEqualTo(2);
        assertThat(rig.log().logStats().recovered().discardedRegions()).isZero();
    }

    @Test
    void givenAFlushedBlock_whenItsBytesAreDamaged_thenItIsAMissAndNoOlderCopyCounts() {
        batch(0, 1);
        assertThat(rig.appendAgain(1, BLOCK_BYTES)).isTrue();
        flush();
        long address = rig.knownBlock(1).address();
        zero(0, 1 + BLOCK_PAGES + 1, BLOCK_PAGES);
        reopen();
        assertThat(rig.knownBlock(1).address()).as("of its newest copy").isEqualTo(address);
        rig.strict = false;
        rig.read(1);
        rig.settle();
        assertThat(rig.outcomes).containsOnlyKeys(TierRead.Outcome.CORRUPT);
    }

    @Test
    void givenALog_whenBothSuperblocksAreZeroed_thenItIsNotFormattedUnlessAsked() {
        batch(0, 3);
        rig.forgetPromises();
        storage.asSlice(0, GEOMETRY.regionOffset(0)).fill((byte) 0);
        rig.open(device(), CONFIG);
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.REFUSED);
        assertThat(rig.log().cause()).contains("superblocks are both blank").contains("restore the first 2 MiB");
        rig.openAndSettle(device(), CONFIG.withOnIncompatible(OnIncompatible.DISCARD));
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        assertThat(rig.known).isEmpty();
    }
}
