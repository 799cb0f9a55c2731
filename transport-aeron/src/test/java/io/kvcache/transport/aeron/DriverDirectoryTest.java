package io.kvcache.transport.aeron;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What room a driver finds.
final class DriverDirectoryTest {

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenLessRoomThanADriverTakes_whenAsked_thenItSaysBothSizes() throws IOException {
        try (DriverDirectory taken = DriverDirectory.claim(folder.resolve("driver"))) {
            taken.requireFreeSpace(4096);
            assertThatThrownBy(() -> taken.requireFreeSpace(Long.MAX_VALUE))
                    .isInstanceOf(IOException.class)
                    .hasMessageMatching(".* has [0-9]+ bytes left; .* takes " + Long.MAX_VALUE + ": .*");
        }
    }
}
