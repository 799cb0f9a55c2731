package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// The shared memory of a server that is killed goes when another one starts, whatever its port.
@EnabledOnOs(OS.LINUX)
@Timeout(300)
@Tag("slow")
final class KilledServerMemoryTest {

    @TempDir
    private Path folder = Path.of("");

    private ServeCommandProcess serve(Path shared) throws Exception {
        return new ServeCommandProcess(
                folder.resolve("errors-" + shared.getFileName()),
                "--transport=127.0.0.1:0",
                "--set=transport.shared_memory=" + shared.getFileName());
    }

    private static Path place() {
        return Path.of("/dev/shm", "kvcache-test-" + UUID.randomUUID());
    }

    @Test
    void givenAServerThatWasKilled_whenAnotherStarts_thenItsMemoryIsGone() throws Exception {
        Path first = place();
        Path second = place();
        try (ServeCommandProcess killed = serve(first)) {
            try (ServeCommandProcess _ = serve(second)) {
                assertThat(first).as("of a server that runs").isDirectoryContaining("glob:**/slots-*");
                killed.kill();
                assertThat(second).isDirectoryContaining("glob:**/slots-*");
            }
        }
        // Both were killed. Servers of other tests may be the ones that remove them.
        Path third = place();
        try (ServeCommandProcess server = serve(third)) {
            assertThat(first).doesNotExist();
            assertThat(second).doesNotExist();
            assertThat(third).isDirectoryContaining("glob:**/slots-*");
            server.terminate();
            server.awaitExit();
        }
        assertThat(third).doesNotExist();
        assertThat(Files.readString(folder.resolve("errors-" + third.getFileName())))
                .doesNotContain("Exception");
    }
}
