package io.kvcache.transport.aeron;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What room a driver finds.
final class DriverFolderTest {

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenLessRoomThanADriverTakes_whenAsked_thenItSaysBothSizes() throws IOException {
        try (DriverFolder taken = DriverFolder.take(folder.resolve("driver"))) {
            taken.requireRoom(4096);
            assertThatThrownBy(() -> taken.requireRoom(Long.MAX_VALUE))
                    .isInstanceOf(IOException.class)
                    .hasMessageMatching(".* has [0-9]+ bytes left; .* takes " + Long.MAX_VALUE + ": .*");
        }
    }
}
