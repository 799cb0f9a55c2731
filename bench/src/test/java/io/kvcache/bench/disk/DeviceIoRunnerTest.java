package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.kvcache.bench.disk.DiskBenchFixture.TestFile;
import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoWorkload;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
final class DeviceIoRunnerTest {

    private static final long FILE_BYTES = 64 << 20;

    private final Arena arena = Arena.ofShared();
    private final DeviceIoRunner mover =
            new DeviceIoRunner(arena.allocate(DiskBenchFixture.DEPTH * (4L << 20), 4096), true);

    @TempDir
    private Path folder;

    @AfterEach
    void closeArena() {
        arena.close();
    }

    @Test
    void givenFile_whenReadAndClosed_thenAllWasMovedAndNothingIsLeft() throws IOException {
        try (TestFile file = TestFile.create(folder, FILE_BYTES, mover)) {
            TransferResult transferResult =
                    mover.run(file.workload(2 * FILE_BYTES, AccessPattern.RANDOM_READ, 1 << 20));
            assertThat(transferResult.bytes()).isEqualTo(2 * FILE_BYTES);
            assertThat(transferResult.seconds()).isPositive();
            assertThat(transferResult.cpuSeconds()).isPositive();
            assertThat(transferResult.inFlight()).isPositive().isLessThanOrEqualTo(DiskBenchFixture.DEPTH);
        }
        requireEmpty();
    }

    @Test
    void givenDeniedUring_whenMoved_thenThreadsDoAndOthersKeepTheirPath() throws IOException {
        try (TestFile file = TestFile.create(folder, FILE_BYTES, mover)) {
            IoWorkload work = file.workload(FILE_BYTES, AccessPattern.REGION_WRITE, 4 << 20);
            String before = mover.run(work).path();
            assertThat(mover.runWithoutUring(work).path()).startsWith("8 threads");
            assertThat(mover.run(work).path()).isEqualTo(before);
        }
    }

    @Test
    void givenSizeThatNoDeviceHas_whenFileIsCreated_thenNothingIsLeft() throws IOException {
        assertThatIOException().isThrownBy(() -> TestFile.create(folder, 1L << 60, mover));
        requireEmpty();
    }

    @Test
    void givenFileOfAnotherSize_whenMoved_thenTheErrorNamesIt() throws IOException {
        Path file = Files.write(folder.resolve("short"), new byte[4096]);
        IoWorkload work = new IoWorkload(
                file, FILE_BYTES, FILE_BYTES, AccessPattern.RANDOM_READ, 1 << 20, DiskBenchFixture.DEPTH);
        assertThatIOException().isThrownBy(() -> mover.run(work)).withMessageContaining(file.toString());
    }

    @Test
    void givenFolders_whenOneIsMissingOrNotInMemory_thenItIsNamed() throws IOException {
        Path missing = folder.resolve("missing");
        assertThatIOException()
                .isThrownBy(() -> DiskBenchDirs.find(missing, folder))
                .withMessageContaining(missing + " is not a directory");
        DiskBenchDirs places = DiskBenchDirs.find(folder, missing);
        assertThat(places.folders().keySet()).isEqualTo(Set.of(StorageMedium.DISK));
        assertThat(places.remarks()).singleElement().asString().contains(missing + " is not a tmpfs");
        assertThat(places.retainOnly(Set.of(StorageMedium.MEMORY)).folders()).isEmpty();
    }

    private void requireEmpty() throws IOException {
        try (Stream<Path> left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }
}
