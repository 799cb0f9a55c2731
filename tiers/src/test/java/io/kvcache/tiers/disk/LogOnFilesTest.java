package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The same log over a file, by each way to ask the kernel.
@EnabledOnOs(OS.LINUX)
final class LogOnFilesTest {

    private static final long BYTES = 8L << 20;
    private static final long SEED = 42;
    private static final DiskLogConfig CONFIG =
            DiskLogConfig.of(DiskGeometry.of(BYTES), 0xABCDEF).withReclaim(new ReclaimConfig(2, 30, 1 << 20, true));

    @TempDir
    private Path folder;

    private final Arena arena = Arena.ofShared();
    private final DiskLogHarness rig = new DiskLogHarness(arena);
    private final SplittableRandom random = new SplittableRandom(SEED);

    @AfterEach
    void close() {
        arena.close();
    }

    private BlockDevice open(IoBackendType engine) throws IOException {
        try {
            return FileDevice.open(FileDeviceOptions.of(folder.resolve("log"), BYTES)
                    .withDepth(64)
                    .withEngine(engine));
        } catch (IOException refused) {
            assumeThat(engine).as(refused.getMessage()).isNotEqualTo(IoBackendType.IO_URING);
            throw refused;
        }
    }

    @ParameterizedTest
    @EnumSource(IoBackendType.class)
    void givenAFile_whenWrittenReclaimedAndOpenedAgain_thenAllThatWasFlushedIsThere(IoBackendType engine)
            throws IOException {
        rig.waitNanos = 1_000_000;
        rig.keep = entry -> entry.keyHi() % 7 == 0;
        for (int opening = 0; opening < 4; opening++) {
            TreeSet<Long> before = new TreeSet<>(rig.known.keySet());
            try (BlockDevice device = open(engine)) {
                rig.register = device::register;
                rig.openAndSettle(device, CONFIG);
                assertThat(rig.log().state()).as(rig.log().cause()).isEqualTo(TierState.SERVING);
                assertThat(rig.known.keySet()).isEqualTo(before);
                work();
            }
        }
        assertThat(rig.known.size()).isGreaterThan(60);
    }

    private void work() {
        for (int i = 0; i < 200; i++) {
            rig.appendAndWait(1 + random.nextInt(50_000));
            if (!rig.known.isEmpty() && random.nextBoolean()) {
                rig.read(rig.known.firstKey());
            }
        }
        rig.settle();
        rig.known.keySet().forEach(rig::read);
        rig.flush();
        rig.settle();
        assertThat(rig.flushes).containsOnly(true);
        assertThat(rig.outcomes.keySet()).containsOnly(TierRead.Outcome.SUCCESS);
        assertThat(rig.log().logStats().reclaimed().regions()).isPositive();
        assertThat(rig.log().logStats().failures()).isZero();
    }
}
