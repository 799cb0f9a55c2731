package io.kvcache.server.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.kvcache.server.doctor.SystemCheck.DiskSpeed;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
final class DiskSpeedTest {

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenAFolder_whenMeasured_thenBothWaysHaveASpeedAndNothingIsLeft() throws IOException {
        DiskSpeed speed = DiskSpeed.measure(folder);

        assertThat(speed.writeGigabytes()).isPositive();
        assertThat(speed.readGigabytes()).isPositive();
        assertThat(speed.isDirect()).isEqualTo(speed.path().contains("O_DIRECT"));
        assertThat(speed.path()).containsAnyOf("io_uring", "threads");
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givenNoFolder_whenMeasured_thenItIsNamed() {
        Path missing = folder.resolve("missing");
        assertThatIOException().isThrownBy(() -> DiskSpeed.measure(missing)).withMessageContaining(missing.toString());
    }
}
