package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

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
final class DeviceMoverTest {

    private static final long FILE_BYTES = 64 << 20;

    private final Arena arena = Arena.ofShared();
    private final DeviceMover mover = new DeviceMover(arena.allocate(DiskBench.DEPTH * (4L << 20), 4096), true);

    @TempDir
    private Path folder;

    @AfterEach
    void closeArena() {
        arena.close();
    }

    @Test
    void givenFile_whenReadAndClosed_thenAllWasMovedAndNothingIsLeft() throws IOException {
        try (TestFile file = TestFile.create(folder, FILE_BYTES, mover)) {
            Traffic traffic = mover.move(file.workload(2 * FILE_BYTES, Pattern.RANDOM_READ, 1 << 20));
            assertThat(traffic.bytes()).isEqualTo(2 * FILE_BYTES);
            assertThat(traffic.seconds()).isPositive();
            assertThat(traffic.cpuSeconds()).isPositive();
            assertThat(traffic.inFlight()).isPositive().isLessThanOrEqualTo(DiskBench.DEPTH);
        }
        requireEmpty();
    }

    @Test
    void givenDeniedUring_whenMoved_thenThreadsDoAndOthersKeepTheirPath() throws IOException {
        try (TestFile file = TestFile.create(folder, FILE_BYTES, mover)) {
            Workload work = file.workload(FILE_BYTES, Pattern.REGION_WRITE, 4 << 20);
            String before = mover.move(work).path();
            assertThat(mover.moveWithoutUring(work).path()).startsWith("8 threads");
            assertThat(mover.move(work).path()).isEqualTo(before);
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
        Workload work = new Workload(file, FILE_BYTES, FILE_BYTES, Pattern.RANDOM_READ, 1 << 20, DiskBench.DEPTH);
        assertThatIOException().isThrownBy(() -> mover.move(work)).withMessageContaining(file.toString());
    }

    @Test
    void givenFolders_whenOneIsMissingOrNotInMemory_thenItIsNamed() throws IOException {
        Path missing = folder.resolve("missing");
        assertThatIOException()
                .isThrownBy(() -> DiskPlaces.find(missing, folder))
                .withMessageContaining(missing + " is not a directory");
        DiskPlaces places = DiskPlaces.find(folder, missing);
        assertThat(places.folders().keySet()).isEqualTo(Set.of(Place.DISK));
        assertThat(places.remarks()).singleElement().asString().contains(missing + " is no tmpfs");
        assertThat(places.only(Set.of(Place.MEMORY)).folders()).isEmpty();
    }

    private void requireEmpty() throws IOException {
        try (Stream<Path> left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }
}
