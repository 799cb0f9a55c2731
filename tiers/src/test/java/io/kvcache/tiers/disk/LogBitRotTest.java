package io.kvcache.tiers.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.MemoryDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// A byte of a closed device that changes is never a wrong byte of a block.
@Tag("slow")
final class LogBitRotTest {

    private static final long BYTES = 6L << 20;
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(DiskGeometry.of(BYTES), 0xABCDEF);
    private static final int ROUNDS = 1000;
    private static final long SEED = 20_260_101;

    private final DiskLogSilencer quiet = new DiskLogSilencer();
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final DiskLogHarness rig = new DiskLogHarness(arena);
    private final SplittableRandom random = new SplittableRandom(SEED);

    @BeforeEach
    void silence() {
        quiet.silence();
    }

    @AfterEach
    void close() {
        quiet.restore();
        arena.close();
    }

    @Test
    void givenAFlippedByte_whenOpenedAndRead_thenNoBlockIsWrong() {
        rig.strict = false;
        rig.openAndSettle(MemoryDevice.create(storage, 64), CONFIG);
        for (int i = 0; i < 60; i++) {
            rig.appendAndWait(1 + random.nextInt(80_000));
        }
        rig.flush();
        rig.settle();
        int blocks = rig.known.size();
        MemorySegment closed = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES).copyFrom(storage);
        int missed = 0;
        for (int round = 0; round < ROUNDS; round++) {
            storage.copyFrom(closed);
            long at = randomOffset(round);
            storage.set(JAVA_BYTE, at, (byte) (storage.get(JAVA_BYTE, at) ^ 1 + random.nextInt(255)));
            missed += blocks - good();
        }
        assertThat(missed).as("blocks that the bytes belonged to").isBetween(ROUNDS / 4, ROUNDS * 3);
    }

    /// Half of them in metadata: the first page of a copy of the superblock, or of a region, or its last
    /// page.
    private long randomOffset(int round) {
        DiskGeometry geometry = CONFIG.geometry();
        long region = geometry.regionOffset(random.nextInt(geometry.regions()));
        return random.nextInt(DiskGeometry.PAGE_BYTES)
                + switch (round % 8) {
                    case 0 -> geometry.superblockOffset(random.nextInt(2));
                    case 1, 2 -> region;
                    case 3 -> region + geometry.regionBytes() - DiskGeometry.PAGE_BYTES;
                    default -> random.nextLong(BYTES / DiskGeometry.PAGE_BYTES) * DiskGeometry.PAGE_BYTES;
                };
    }

    private int good() {
        rig.outcomes.clear();
        rig.open(MemoryDevice.create(storage, 64), CONFIG);
        rig.settle();
        rig.known.keySet().forEach(rig::read);
        rig.settle();
        return rig.outcomes.getOrDefault(TierRead.Outcome.SUCCESS, 0);
    }
}
