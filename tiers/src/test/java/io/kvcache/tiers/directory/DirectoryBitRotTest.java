package io.kvcache.tiers.directory;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.device.OverlayDevice;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.disk.DiskLogFixture;
import io.kvcache.tiers.options.OnIncompatible;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// A byte of any file of a closed tier that changes is never a wrong byte of a block: at most a block is
/// missed, or the directory is refused.
@EnabledOnOs(OS.LINUX)
final class DirectoryBitRotTest {

    private static final long BYTES = 6L << 20;
    private static final int ROUNDS = Repetitions.usualOrFull(250, 1000);
    private static final int OBJECTS = 300;
    private static final long SEED = 20_260_301;
    private static final int PAGE = 4096;

    /// The page cache spares the disk a write a round, and few reads at a time spare memory for them.
    private static final DirectoryOptions OPTIONS = new DirectoryOptions(
            OnIncompatible.REFUSE,
            DirectIo.OFF,
            IoBackendType.AUTO,
            new LogLimits(16, 16, 1 << 20, 4096, 16, 30_000_000_000L),
            new ReclaimConfig(2, 0, 4096, false),
            true);

    private final SplittableRandom random = new SplittableRandom(SEED);
    private final Logger logger = Logger.getLogger("io.kvcache");

    @TempDir
    private Path folder;

    @Test
    @Tag("slow")
    void givenAFlippedByte_whenOpenedAndRead_thenNoByteIsWrong() throws IOException {
        Set<Long> keys = fill();
        int missed = 0;
        int refused = 0;
        for (int round = 0; round < ROUNDS; round++) {
            boolean lock = round % 50 == 0;
            try (FileChannel file = FileChannel.open(
                    folder.resolve(lock ? "lock" : "tier"), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                long at = lock ? 0 : randomOffset(round);
                byte was = flip(file, at);
                int good = good();
                refused += good < 0 ? 1 : 0;
                missed += keys.size() - Math.max(0, good);
                file.write(ByteBuffer.wrap(new byte[] {was}), at);
            }
        }
        assertThat(good()).as("with every byte as it was").isEqualTo(keys.size());
        assertThat(refused).as("one copy of the superblock is enough").isZero();
        assertThat(missed).as("objects that the bytes belonged to").isBetween(ROUNDS / 10, ROUNDS * 10);
    }

    @BeforeEach
    void silence() {
        logger.setLevel(Level.OFF);
    }

    @AfterEach
    void speak() {
        logger.setLevel(null);
    }

    private Set<Long> fill() {
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, OPTIONS);
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            for (int key = 1; key <= OBJECTS; key++) {
                log.append(key, 1 + random.nextInt(12_000));
            }
            log.flush();
            return log.keys();
        }
    }

    /// Half of them in metadata: superblocks, and first and last pages of regions.
    private long randomOffset(int round) {
        int region = 2 + random.nextInt(4);
        long page = switch (round % 8) {
            case 1 -> random.nextInt(2) << 8;
            case 2 -> (long) region << 8;
            case 3, 4 -> ((region + 1L) << 8) - 1 - random.nextInt(2);
            default -> random.nextLong(BYTES / PAGE);
        };
        return page * PAGE + random.nextInt(PAGE);
    }

    private byte flip(FileChannel file, long at) throws IOException {
        ByteBuffer one = ByteBuffer.allocate(1);
        file.read(one, at);
        byte was = one.get(0);
        file.write(ByteBuffer.wrap(new byte[] {(byte) (was ^ 1 + random.nextInt(255))}), at);
        return was;
    }

    /// How many objects are found and good, or -1 when the directory is refused.
    private int good() {
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, OPTIONS)) {
            try (DiskLogFixture log = new DiskLogFixture(new OverlayDevice(directory.device()), directory.config())) {
                return log.readAll();
            }
        } catch (DiskDirectoryException refused) {
            return -1;
        }
    }
}
