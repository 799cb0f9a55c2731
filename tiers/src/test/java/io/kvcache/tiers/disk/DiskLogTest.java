package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.simulation.FaultRates;
import io.kvcache.tiers.simulation.FaultyDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What a log does while nothing goes wrong.
final class DiskLogTest {

    private static final long BYTES = 7L << 20;
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(DiskGeometry.of(BYTES), 0xABCDEF);

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final DiskLogHarness rig = new DiskLogHarness(arena);

    @AfterEach
    void close() {
        arena.close();
    }

    private BlockDevice device() {
        return new FaultyDevice(MemoryDevice.create(storage, 32), FaultRates.none(), 1, rig::now);
    }

    @Test
    void givenBlocks_whenAppended_thenTheyCanBeRead() {
        rig.openAndSettle(device(), CONFIG);
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        for (int i = 0; i < 50; i++) {
            assertThat(rig.append(1 + i * 1000)).isPositive();
        }
        rig.settle();
        assertThat(rig.known).hasSize(50);
        rig.known.keySet().forEach(rig::read);
        rig.settle();
        assertThat(rig.outcomes).containsExactly(entry(TierRead.Outcome.SUCCESS, 50));
    }

    @Test
    void givenFlushedBlocks_whenOpenedAgain_thenTheyAreThere() {
        rig.openAndSettle(device(), CONFIG);
        for (int i = 0; i < 150; i++) {
            assertThat(rig.append(1 + i * 200)).isPositive();
        }
        rig.flush();
        rig.settle();
        assertThat(rig.flushes).containsExactly(true);
        assertThat(rig.durable).hasSize(150);
        rig.openAndSettle(device(), CONFIG);
        assertThat(rig.known).hasSize(150);
        rig.known.keySet().forEach(rig::read);
        rig.settle();
        assertThat(rig.outcomes).containsExactly(entry(TierRead.Outcome.SUCCESS, 150));
    }

    @Test
    void givenBlocksOfManySizes_whenPartsAreRead_thenOnlyTheSmallAreRefused() {
        rig.openAndSettle(device(), CONFIG.withStaging(true));
        for (int i = 0; i < 12; i++) {
            assertThat(rig.appendAndWait(20_000 + i * 40_000)).isPositive();
        }
        rig.settle();
        int read = 0;
        for (long key : rig.known.keySet()) {
            DiskLogHarness.Known known = rig.knownBlock(key);
            int bytes = known.entry().bytes();
            boolean hasHead = StoredLayout.ofAddress(known.address()).headPages() > 0;
            assertThat(hasHead).as("%d bytes", bytes).isEqualTo(isCoded(key, bytes) || bytes >= 256 << 10);
            SubmitResult submitted = rig.readRange(key, bytes / 3, bytes / 2);
            assertThat(submitted).isEqualTo(hasHead ? SubmitResult.ACCEPTED : SubmitResult.REJECTED);
            read += hasHead ? 1 : 0;
            rig.settle();
        }
        assertThat(rig.rangesRead).isEqualTo(read).isGreaterThan(4);
    }

    /// Contents with an odd seed are bf16.
    private static boolean isCoded(long key, int bytes) {
        return bytes >= 64 << 10 && (BlockContent.of(key, ~key).seed() & 1) == 1;
    }

    @Test
    void givenMoreThanFits_whenAppended_thenTheOldestIsReclaimed() {
        rig.openAndSettle(device(), CONFIG);
        for (int i = 0; i < 2000; i++) {
            rig.appendAndWait(20_000);
        }
        rig.settle();
        assertThat(rig.known.size()).isBetween(50, 260);
        rig.known.keySet().forEach(rig::read);
        rig.settle();
        assertThat(rig.outcomes.keySet()).containsExactly(TierRead.Outcome.SUCCESS);
    }
}
