package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.DurableTierContract;
import io.kvcache.core.contract.DurableTierUnderTest;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// A disk tier keeps the contract of every tier, over memory and over files by each way to ask the kernel.
final class DiskTierContractTest {

    private static final long BYTES = InMemoryDiskTier.BYTES;

    @TempDir
    private static Path folder;

    private final DiskLogSilencer quiet = new DiskLogSilencer();

    @BeforeEach
    void silence() {
        quiet.silence();
    }

    @AfterEach
    void speak() {
        quiet.restore();
    }

    @Nested
    final class OverMemory extends DurableTierContract {
        OverMemory() {
            super(InMemoryDiskTier::new);
        }
    }

    @Nested
    @EnabledOnOs(OS.LINUX)
    final class OverIoUring extends DurableTierContract {
        OverIoUring() {
            super(() -> new InAFile(IoBackendType.IO_URING));
        }
    }

    @Nested
    @EnabledOnOs(OS.LINUX)
    final class OverThreads extends DurableTierContract {
        OverThreads() {
            super(() -> new InAFile(IoBackendType.THREADS));
        }
    }

    /// A file of a new name.
    private static final class InAFile implements DurableTierUnderTest {
        private final IoBackendType engine;
        private final Path file;

        InAFile(IoBackendType engine) {
            this.engine = engine;
            try {
                file = Files.createTempFile(folder, "tier", "");
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        @Override
        public Tier open(TierListener listener) {
            return InMemoryDiskTier.open(device(), listener);
        }

        private BlockDevice device() {
            try {
                return FileDevice.open(
                        FileDeviceOptions.of(file, BYTES).withDepth(64).withEngine(engine));
            } catch (IOException refused) {
                assumeThat(engine).as(refused.getMessage()).isNotEqualTo(IoBackendType.IO_URING);
                throw new UncheckedIOException(refused);
            }
        }

        private <T> T mapped(Function<MemorySegment, T> use) {
            if (checkedSize() == 0) {
                device().close();
            }
            try (Arena arena = Arena.ofConfined();
                    FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                return use.apply(channel.map(MapMode.READ_WRITE, 0, BYTES, arena));
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        private long checkedSize() {
            try {
                return Files.size(file);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        @Override
        public int damage(byte[] found) {
            return mapped(storage -> InMemoryDiskTier.damage(storage, found));
        }

        @Override
        public void estrange() {
            mapped(storage -> {
                InMemoryDiskTier.estrange(storage);
                return 0;
            });
        }

        @Override
        public long checksum() {
            return mapped(InMemoryDiskTier::checksum);
        }

        @Override
        public long waitNanos() {
            return 1_000_000;
        }

        @Override
        public void close() {
            try {
                Files.delete(file);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
    }
}
