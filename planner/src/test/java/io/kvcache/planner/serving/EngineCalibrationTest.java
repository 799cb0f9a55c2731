package io.kvcache.planner.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class EngineCalibrationTest {

    private static final EngineCalibration TIMES = new EngineCalibration(
            "http://there:1", "model", Instant.EPOCH, 0.01, 1e-3, 5e-7, 2e-6, 0.005, 16, 2048, 0.03);

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenAFile_whenReadBack_thenItIsTheSame() throws Exception {
        Path file = folder.resolve("times.json");
        TIMES.write(file);
        assertThat(EngineCalibration.read(file)).isEqualTo(TIMES);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"secondsPerToken\" : 0.001|\"secondsPerToken\" : 0|secondsPerToken is 0, must be above 0",
                "\"secondsPerToken\" : 0.001|\"secondsPerToken\" : -1|secondsPerToken is -1.0, must be 0 to 3600",
                "\"blockTokens\" : 16|\"blockTokens\" : 0|blockTokens is 0, must be 1 to 1048576",
                "\"blockTokens\" : 16|\"blocks\" : 16|Missing creator property 'blockTokens'",
                "\"blockTokens\" : 16,||blockTokens",
                "{|[|is not a calibration",
            })
    void givenAnotherFile_whenRead_thenTheErrorNamesWhatIsWrong(String part, String other, String message)
            throws Exception {
        Path file = folder.resolve("times.json");
        TIMES.write(file);
        Files.writeString(file, Files.readString(file).replace(part, other == null ? "" : other));
        assertThatThrownBy(() -> EngineCalibration.read(file))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining(message);
    }

    @Test
    void givenNoFile_whenRead_thenTheErrorNamesIt() {
        assertThatThrownBy(() -> EngineCalibration.read(folder.resolve("missing")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("missing file: " + folder.resolve("missing"));
    }
}
