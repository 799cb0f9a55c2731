package io.kvcache.tiers.device;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.device.IoUring.IoUringSetup;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Files by every path: both engines, with and without the page cache, on a disk and in memory.
@EnabledOnOs(OS.LINUX)
class FileDeviceContractTest {

    @TempDir
    private Path disk;

    /// Named by nothing that comes again: what a test that was killed has left there is not blank.
    private final Path memory = Path.of("/dev/shm", "kvcache-test-" + UUID.randomUUID());

    @AfterEach
    void removeFile() throws IOException {
        Files.deleteIfExists(memory);
    }

    private static BlockDevice open(FileDeviceOptions options) throws IOException {
        assumeTrue(options.engine() != IoBackendType.IO_URING || hasUring(), "io_uring is refused here");
        return FileDevice.open(options);
    }

    static boolean hasUring() {
        Libc libc = Libc.system();
        IoUringSetup setup = IoUringSetup.request(libc, 1);
        if (setup.isAccepted()) {
            libc.call(LibcFunction.CLOSE, setup.descriptor());
        }
        return setup.isAccepted();
    }

    private FileDeviceOptions onDisk(long size, int depth, IoBackendType engine) {
        return FileDeviceOptions.of(disk.resolve("device"), size)
                .withDepth(depth)
                .withEngine(engine);
    }

    private FileDeviceOptions inMemory(long size, int depth, IoBackendType engine) {
        assumeTrue(Files.isWritable(memory.getParent()), "there is no /dev/shm");
        return FileDeviceOptions.of(memory, size).withDepth(depth).withEngine(engine);
    }

    @Nested
    class UringOnDisk extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(onDisk(size, depth, IoBackendType.IO_URING));
        }
    }

    @Nested
    class ThreadsOnDisk extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(onDisk(size, depth, IoBackendType.THREADS));
        }
    }

    @Nested
    class UringThroughThePageCache extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(
                    onDisk(size, depth, IoBackendType.IO_URING).withDirect(DirectIo.OFF));
        }
    }

    @Nested
    class ThreadsThroughThePageCache extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(
                    onDisk(size, depth, IoBackendType.THREADS).withDirect(DirectIo.OFF));
        }
    }

    @Nested
    class UringInMemory extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(inMemory(size, depth, IoBackendType.IO_URING));
        }
    }

    @Nested
    class ThreadsInMemory extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(inMemory(size, depth, IoBackendType.THREADS));
        }
    }

    @Nested
    class UringMisuse extends BlockDeviceMisuseContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(onDisk(size, depth, IoBackendType.IO_URING));
        }
    }

    @Nested
    class ThreadsMisuse extends BlockDeviceMisuseContract {
        @Override
        protected BlockDevice open(long size, int depth) throws IOException {
            return FileDeviceContractTest.open(onDisk(size, depth, IoBackendType.THREADS));
        }
    }
}
