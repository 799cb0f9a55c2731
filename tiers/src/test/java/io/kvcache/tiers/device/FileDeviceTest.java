package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.tiers.device.DeviceFile.FilePreallocator;
import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.device.IoUringBackend.RegisteredBuffers;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.simulation.BlockingDeviceIo;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@EnabledOnOs(OS.LINUX)
class FileDeviceTest {

    private static final long SIZE = 1 << 20;

    @TempDir
    private Path folder;

    @Test
    void givenNewFile_whenOpened_thenItIsItsOwnersAndHasAllItsSpace() throws IOException {
        try (BlockDevice device = FileDevice.open(options())) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path())))
                    .isEqualTo("rw-------");
            assertThat(Files.size(path())).isEqualTo(device.size());
            assertThat(allocatedBytes()).isGreaterThanOrEqualTo(SIZE);
        }
    }

    @Test
    void givenKilledCreation_whenOpenedAgain_thenTheEmptyFileIsANewOne() throws IOException {
        Files.createFile(path());
        try (BlockDevice device = FileDevice.open(options())) {
            assertThat(Files.size(path())).isEqualTo(device.size());
        }
    }

    @Test
    void givenUring_whenMemoryIsRegistered_thenTheDescriptionSaysSo() throws IOException {
        assumeThat(FileDeviceContractTest.hasUring()).as("io_uring is allowed").isTrue();
        try (Arena arena = Arena.ofConfined();
                BlockDevice device = FileDevice.open(options())) {
            assertThat(device.describe()).startsWith("io_uring, ").doesNotContain("buffers");
            device.register(arena.allocate(4 * ALIGNMENT, ALIGNMENT)); // who may lock little may lock that
            assertThat(device.describe()).startsWith("io_uring, fixed buffers, ");
        }
    }

    @Test
    @SuppressWarnings("restricted") // The kernel refuses the address, and nothing here reads it.
    void givenMostMemoryIsRefused_whenLessIsRegistered_thenTheDescriptionIsOfTheMost() throws IOException {
        assumeThat(FileDeviceContractTest.hasUring()).as("io_uring is allowed").isTrue();
        try (Arena arena = Arena.ofConfined();
                BlockDevice device = FileDevice.open(options())) {
            device.register(MemorySegment.ofAddress(ALIGNMENT).reinterpret(16 * ALIGNMENT)); // nothing is there
            device.register(arena.allocate(4 * ALIGNMENT, ALIGNMENT));
            assertThat(device.describe()).startsWith("io_uring, plain buffers, ");
        }
    }

    @Test
    void givenThreadsAndPageCache_whenOpened_thenTheDescriptionSaysSo() throws IOException {
        FileDeviceOptions options = options().withEngine(IoBackendType.THREADS).withDirect(DirectIo.OFF);
        try (BlockDevice device = FileDevice.open(options)) {
            assertThat(device.describe()).isEqualTo("8 threads, page cache");
        }
    }

    @Test
    void givenProfileThatForbidsUring_whenOpened_thenThreadsDoAndTheLogSaysSoOnce() throws Exception {
        try (LogCapture log = new LogCapture(FileDevice.class);
                BlockDevice device = SeccompSandbox.NO_URING.run(() -> FileDevice.open(options()))) {
            assertThat(device.describe()).startsWith("8 threads, ");
            requireWorks(device);
            assertThat(log.warnings())
                    .singleElement()
                    .asString()
                    .contains("io_uring is refused for " + path(), "EPERM", "seccomp");
        }
    }

    @Test
    void givenProfileThatForbidsUring_whenItIsAMust_thenTheErrorSaysWhyAndWhatElse() {
        FileDeviceOptions options = options().withEngine(IoBackendType.IO_URING);
        assertThatIOException()
                .isThrownBy(() -> SeccompSandbox.NO_URING.run(() -> FileDevice.open(options)))
                .withMessageContaining("io_uring is refused, EPERM")
                .withMessageContaining("choose engine AUTO or THREADS");
    }

    @Test
    void givenPlatformWithoutSyscall_whenOpened_thenThreadsDo() throws IOException {
        Libc libc = Libc.bind(name -> name.equals("syscall")
                ? Optional.empty()
                : Linker.nativeLinker().defaultLookup().find(name));
        try (BlockDevice device = FileDevice.open(options(), libc)) {
            assertThat(device.describe()).startsWith("8 threads, ");
            requireWorks(device);
        }
    }

    @Test
    void givenPlatformWithoutAnyCall_whenOpened_thenTheErrorSaysSo() {
        assertThatIOException()
                .isThrownBy(() -> FileDevice.open(options(), Libc.unavailable()))
                .withMessageContaining("disks need Linux");
    }

    @ParameterizedTest
    @EnumSource(names = {"NO_DIRECT_OPEN", "NO_POSITIONAL_READ"})
    void givenFileSystemThatRefusesDirect_whenOpened_thenThePageCacheDoesAndTheLogSaysSoOnce(SeccompSandbox refusal)
            throws Exception {
        assumeThat(FileDeviceContractTest.hasUring()).as("io_uring is allowed").isTrue();
        try (LogCapture log = new LogCapture(DeviceFile.class);
                BlockDevice device = refusal.run(() -> FileDevice.open(options()))) {
            assertThat(device.describe()).isEqualTo("io_uring, page cache");
            requireWorks(device);
            assertThat(log.warnings()).singleElement().asString().contains("refuses O_DIRECT");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"NO_DIRECT_OPEN", "NO_POSITIONAL_READ"})
    void givenFileSystemThatRefusesDirect_whenItIsAMust_thenTheErrorSaysWhatElse(SeccompSandbox refusal) {
        assertThatIOException()
                .isThrownBy(() -> refusal.run(() -> FileDevice.open(options().withDirect(DirectIo.ON))))
                .withMessageContaining("refuses O_DIRECT; choose direct AUTO or OFF");
    }

    @Test
    void givenTooLittleLockableMemory_whenRegistered_thenItTravelsUnregistered() throws Exception {
        assumeThat(FileDeviceContractTest.hasUring()).as("io_uring is allowed").isTrue();
        long tooMuch = 256 << 20;
        assumeThat(lockableBytes()).as("bytes that this process may lock").isLessThan(tooMuch);
        try (Arena arena = Arena.ofShared();
                LogCapture log = new LogCapture(RegisteredBuffers.class);
                BlockDevice device = SeccompSandbox.NO_LOCKED_MEMORY.run(() -> FileDevice.open(options()))) {
            device.register(arena.allocate(tooMuch, ALIGNMENT));
            assertThat(device.describe()).startsWith("io_uring, plain buffers, ");
            assertThat(log.warnings()).singleElement().asString().contains("ENOMEM: raise ulimit -l");
            requireWorks(device);
        }
    }

    @Test
    void givenFileSystemThatCannotReserveSpace_whenCreated_thenItWorksAndTheLogSaysSo() throws Exception {
        try (LogCapture log = new LogCapture(FilePreallocator.class);
                BlockDevice device = SeccompSandbox.NO_RESERVING.run(() -> FileDevice.open(options()))) {
            requireWorks(device);
            assertThat(path()).hasSize(SIZE);
            assertThat(log.warnings()).singleElement().asString().contains("cannot reserve space");
        }
    }

    @Test
    void givenFileOfAnotherSize_whenOpened_thenTheErrorNamesBothAndNothingIsTouched() throws IOException {
        Files.write(path(), new byte[8192]);
        assertThatIOException()
                .isThrownBy(() -> FileDevice.open(options()))
                .withMessageContaining("it has 8192 bytes and must have 1048576");
        assertThat(Files.size(path())).isEqualTo(8192);
    }

    @Test
    void givenMissingFile_whenItIsNotToBeCreated_thenTheErrorNamesIt() {
        assertThatIOException()
                .isThrownBy(() -> FileDevice.open(options().withCreate(false)))
                .withMessageContaining("%s: ENOENT".formatted(path()));
        assertThat(path()).doesNotExist();
    }

    @Test
    void givenTooLittleSpace_whenCreated_thenTheErrorNamesBothSizesAndNothingStays() {
        FileDeviceOptions options = FileDeviceOptions.of(path(), 1L << 50);
        assertThatIOException()
                .isThrownBy(() -> FileDevice.open(options))
                .withMessageContaining("of 1.0 PiB (1125899906842624 bytes): its file system has only ");
        assertThat(path()).doesNotExist();
    }

    @ParameterizedTest
    @EnumSource(names = {"IO_URING", "THREADS"})
    void givenFileTruncatedMeanwhile_whenRead_thenTheOutcomeIsEndOfFile(IoBackendType engine) throws IOException {
        assumeThat(engine != IoBackendType.IO_URING || FileDeviceContractTest.hasUring())
                .as("io_uring is allowed")
                .isTrue();
        try (Arena arena = Arena.ofShared();
                BlockDevice device = FileDevice.open(options().withEngine(engine))) {
            try (FileChannel other = FileChannel.open(path(), StandardOpenOption.WRITE)) {
                other.truncate(3 * ALIGNMENT);
            }
            MemorySegment target = arena.allocate(4 * ALIGNMENT, ALIGNMENT);
            assertThat(new BlockingDeviceIo(device).read(target, ALIGNMENT)).isEqualTo(IoOutcome.END_OF_FILE);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"IO_URING", "THREADS"})
    void givenFullFileSystem_whenAHoleIsWritten_thenTheOutcomeIsNoSpace(IoBackendType engine) throws Exception {
        assumeThat(engine != IoBackendType.IO_URING || FileDeviceContractTest.hasUring())
                .as("io_uring is allowed")
                .isTrue();
        try (SmallFileSystem small = SmallFileSystem.mount(folder.resolve("small"), 2 * SIZE);
                Arena arena = Arena.ofShared();
                BlockDevice device =
                        FileDevice.open(FileDeviceOptions.of(small.folder().resolve("device"), SIZE)
                                .withEngine(engine))) {
            BlockingDeviceIo calls = new BlockingDeviceIo(device);
            MemorySegment half = arena.allocate(SIZE / 2, ALIGNMENT);
            assertThat(calls.discard(0, SIZE / 2)).isEqualTo(IoOutcome.DONE);
            small.fill();
            assertThat(calls.write(half, 0)).isEqualTo(new IoOutcome(IoOutcome.Kind.NO_SPACE, "ENOSPC"));
            assertThat(calls.write(half, SIZE / 2)).isEqualTo(IoOutcome.DONE);
        }
    }

    private static void requireWorks(BlockDevice device) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment source = arena.allocate(ALIGNMENT, ALIGNMENT);
            MemorySegment target = arena.allocate(ALIGNMENT, ALIGNMENT);
            new BlockContent(1).fill(source);
            assertThat(new BlockingDeviceIo(device).write(source, ALIGNMENT)).isEqualTo(IoOutcome.DONE);
            assertThat(new BlockingDeviceIo(device).read(target, ALIGNMENT)).isEqualTo(IoOutcome.DONE);
            new BlockContent(1).requireEqual(target);
        }
    }

    private FileDeviceOptions options() {
        return FileDeviceOptions.of(path(), SIZE);
    }

    private Path path() {
        return folder.resolve("device");
    }

    private static long lockableBytes() throws IOException {
        Matcher limit =
                Pattern.compile("locked memory +([0-9]+)").matcher(Files.readString(Path.of("/proc/self/limits")));
        return limit.find() ? Long.parseLong(limit.group(1)) : Long.MAX_VALUE;
    }

    private long allocatedBytes() throws IOException {
        Process stat = new ProcessBuilder("stat", "-c", "%b", path().toString()).start();
        return Long.parseLong(new String(stat.getInputStream().readAllBytes(), US_ASCII).strip()) * 512;
    }
}
