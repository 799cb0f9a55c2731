package io.kvcache.tiers.memory;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.Backing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class ShmFileFactoryTest {

    private static final long BYTES = 100L << 20;

    @TempDir
    private Path folder;

    @Test
    void givenFile_whenOpen_thenOnlyItsOwnerCanReachIt() throws IOException {
        try (MappedMemory memory = source("shm").reserve("slots", BYTES)) {
            Path file = memory.sharedPath().orElseThrow();
            assertThat(permissions(file)).isEqualTo("rw-------");
            assertThat(permissions(folder.resolve("shm"))).isEqualTo("rwx------");
        }
    }

    @Test
    void givenFile_whenOpen_thenItsSpaceIsTaken() throws IOException {
        try (MappedMemory memory = source("shm").reserve("slots", BYTES)) {
            Process stat = new ProcessBuilder(
                            "stat",
                            "-c",
                            "%b",
                            memory.sharedPath().orElseThrow().toString())
                    .start();
            long blocks = Long.parseLong(new String(stat.getInputStream().readAllBytes(), UTF_8).strip());
            assertThat(blocks * 512).isGreaterThanOrEqualTo(BYTES);
        }
    }

    @Test
    void givenFile_whenClosed_thenItIsGone() {
        MappedMemory memory = source("shm").reserve("slots", BYTES);
        memory.close();
        assertThat(folder.resolve("shm")).isEmptyDirectory();
    }

    @Test
    void givenTwoReservationsOfOnePurpose_whenBothOpen_thenTheyHaveTheirOwnFiles() {
        try (MappedMemory first = source("shm").reserve("slots", BYTES);
                MappedMemory second = source("shm").reserve("slots", BYTES)) {
            assertThat(first.sharedPath()).isNotEqualTo(second.sharedPath());
        }
    }

    @Test
    void givenTooLittleSpace_whenReserved_thenTheErrorNamesBothSizesAndNothingStays() throws IOException {
        long wanted = 1L << 50;
        assertThatIllegalStateException()
                .isThrownBy(() -> source("shm").reserve("slots", wanted))
                .withMessageContaining("Cannot reserve 1.0 PiB (1125899906842624 bytes)")
                .withMessageContaining("for 'slots'")
                .withMessageMatching("(?s).* has only [0-9.]+ .iB \\([0-9]+ bytes\\) left.*ENOSPC.*");
        assertThat(folder.resolve("shm")).isEmptyDirectory();
    }

    @Test
    void givenFolderThatOthersCanEnter_whenReserved_thenIsRefused() throws IOException {
        Path open = Files.createDirectory(folder.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-xr-x"));
        assertThatIllegalStateException()
                .isThrownBy(() -> source("open").reserve("slots", BYTES))
                .withMessageContaining("must be a directory of mode 0700");
    }

    @Test
    void givenLinkInPlaceOfTheFolder_whenReserved_thenIsRefused() throws IOException {
        Path target = Files.createDirectory(folder.resolve("target"));
        Files.setPosixFilePermissions(target, PosixFilePermissions.fromString("rwx------"));
        Files.createSymbolicLink(folder.resolve("link"), target);
        assertThatIllegalStateException()
                .isThrownBy(() -> source("link").reserve("slots", BYTES))
                .withMessageContaining("must be a directory of mode 0700");
    }

    private MappedMemorySource source(String name) {
        return new MappedMemorySource(
                MemoryOptions.defaults().withBacking(Backing.SHM_FILE).withShmDirectory(folder.resolve(name)));
    }

    private static String permissions(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }
}
