package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
final class DeviceLoadTest {

    private static final long FILE_BYTES = 64 << 20;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment pool = arena.allocate(DeviceLoad.DEPTH * (4L << 20), 4096);

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    DeviceLoadTest() {}

    @AfterEach
    void closeArena() {
        arena.close();
    }

    private DeviceLoad load(Path file, boolean write, int pieceBytes) {
        return new DeviceLoad(file, FILE_BYTES, write, pieceBytes, pool, DeviceLoad.DEPTH);
    }

    @Test
    void givenFile_whenWrittenAndRead_thenAllIsMoved() throws IOException {
        Path file = folder.resolve("file");
        assertThat(load(file, true, 4 << 20).run(FILE_BYTES).gigabytesPerSecond())
                .isPositive();
        assertThat(file).hasSize(FILE_BYTES);
        assertThat(load(file, false, 1 << 20).run(2 * FILE_BYTES).gigabytesPerSecond())
                .isPositive();
    }

    @Test
    void givenDeniedUring_whenMoved_thenThreadsDoAndOthersKeepTheirPath() throws IOException {
        DeviceLoad load = load(folder.resolve("file"), true, 4 << 20);
        String before = load.run(FILE_BYTES).path();
        assertThat(load.runWithoutUring(FILE_BYTES).path()).startsWith("8 threads");
        assertThat(load.run(FILE_BYTES).path()).isEqualTo(before);
    }

    @Test
    void givenFileOfAnotherSize_whenMoved_thenTheErrorNamesIt() throws IOException {
        Path file = Files.write(folder.resolve("short"), new byte[4096]);
        assertThatIOException()
                .isThrownBy(() -> load(file, false, 1 << 20).run(FILE_BYTES))
                .withMessageContaining(file.toString());
    }
}
