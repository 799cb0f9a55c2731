package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.DurableTierContract;
import io.kvcache.core.contract.TierUnderTest;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.IoEngine;
import io.kvcache.tiers.device.MemoryDevice;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.Function;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// A disk tier keeps the contract of every tier, over memory and over files by each way to ask the kernel.
final class DiskTierContractTest {

    private static final long BYTES = 8L << 20;
    private static final DiskLogConfig CONFIG =
            DiskLogConfig.of(Geometry.of(BYTES), 0xABCDEF).withReclaim(new ReclaimRules(2, 50, 1 << 20, false));

    @TempDir
    private static Path folder;

    private final QuietLog quiet = new QuietLog();

    @BeforeEach
    void silence() {
        quiet.silence();
    }

    @AfterEach
    void speak() {
        quiet.speak();
    }

    @Nested
    final class OverMemory extends DurableTierContract {
        OverMemory() {
            super(InMemory::new);
        }
    }

    @Nested
    @EnabledOnOs(OS.LINUX)
    final class OverIoUring extends DurableTierContract {
        OverIoUring() {
            super(() -> new InAFile(IoEngine.IO_URING));
        }
    }

    @Nested
    @EnabledOnOs(OS.LINUX)
    final class OverThreads extends DurableTierContract {
        OverThreads() {
            super(() -> new InAFile(IoEngine.THREADS));
        }
    }

    private static Tier open(BlockDevice device, TierListener listener) {
        DiskTier.Beneath beneath = new DiskTier.Beneath(device, device, new DiskMemory(ArenaMemory.source()));
        return new DiskTier("disk", beneath, CONFIG, listener);
    }

    /// Changes a byte wherever the bytes are found; they begin at whole pages.
    private static int damage(MemorySegment storage, byte[] found) {
        MemorySegment wanted = MemorySegment.ofArray(found);
        int places = 0;
        for (long at = 0; at < storage.byteSize(); at += Geometry.PAGE_BYTES) {
            if (storage.asSlice(at, found.length).mismatch(wanted) < 0) {
                storage.set(ValueLayout.JAVA_BYTE, at + 1, (byte) ~found[1]);
                places++;
            }
        }
        return places;
    }

    private static long checksum(MemorySegment storage) {
        CRC32C crc = new CRC32C();
        crc.update(storage.asByteBuffer());
        return crc.getValue();
    }

    private static void estrange(MemorySegment storage) {
        storage.asSlice(0, 2L * Geometry.SUPERBLOCK_BYTES).fill((byte) 'x');
    }

    /// Bytes in memory.
    private static final class InMemory implements TierUnderTest {
        private final Arena arena = Arena.ofShared();
        private final MemorySegment storage = arena.allocate(BYTES, Geometry.PAGE_BYTES);

        @Override
        public Tier open(TierListener listener) {
            return DiskTierContractTest.open(MemoryDevice.over(storage, 16), listener);
        }

        @Override
        public int damage(byte[] found) {
            return DiskTierContractTest.damage(storage, found);
        }

        @Override
        public void estrange() {
            DiskTierContractTest.estrange(storage);
        }

        @Override
        public long checksum() {
            return DiskTierContractTest.checksum(storage);
        }

        @Override
        public long waitNanos() {
            return 0;
        }

        @Override
        public void close() {
            arena.close();
        }
    }

    /// A file of a new name.
    private static final class InAFile implements TierUnderTest {
        private final IoEngine engine;
        private final Path file;

        InAFile(IoEngine engine) {
            this.engine = engine;
            try {
                file = Files.createTempFile(folder, "tier", "");
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        @Override
        public Tier open(TierListener listener) {
            return DiskTierContractTest.open(device(), listener);
        }

        private BlockDevice device() {
            try {
                return FileDevice.open(
                        FileDeviceOptions.of(file, BYTES).withDepth(64).withEngine(engine));
            } catch (IOException refused) {
                assumeThat(engine).as(refused.getMessage()).isNotEqualTo(IoEngine.IO_URING);
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
            return mapped(storage -> DiskTierContractTest.damage(storage, found));
        }

        @Override
        public void estrange() {
            mapped(storage -> {
                DiskTierContractTest.estrange(storage);
                return 0;
            });
        }

        @Override
        public long checksum() {
            return mapped(DiskTierContractTest::checksum);
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
