package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// With or without a GPU.
@Tag("slow")
final class GpuBenchCommandTest {

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    GpuBenchCommandTest() {}

    @Test
    void givenQuickAndJson_whenRun_thenALineEachAndItSaysWhetherTheyMeanAnything() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "gpu", "--quick", "--json", "--strict");
        assertThat(commandResult.exitCode()).isIn(0, 1);
        JsonMapper json = JsonMapper.builder().build();
        List<JsonNode> lines = commandResult.out().lines().map(json::readTree).toList();
        assertThat(lines)
                .extracting(line -> line.path("name").asString())
                .contains("onboard", "offload", "both at once", "into pages", "out of pages");
        for (JsonNode line : lines) {
            assertThat(line.path("device").asString()).isNotBlank();
            assertThat(line.path("ratio").asDouble()).isPositive();
            if (!line.path("gpu").asBoolean()) {
                assertThat(commandResult.err()).contains("no GPU is used", "mean nothing");
                assertThat(commandResult.exitCode()).as("budgets are for GPUs").isZero();
            }
        }
    }

    @Test
    void givenLinesWhereNoFileCanBe_whenRun_thenThatIsSaidAndNothingIsMeasured() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "gpu", "--quick", "--lines", folder.toString());
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("--lines takes a file that can be written to", folder.toString());
        assertThat(commandResult.out()).isEmpty();
    }

    @Test
    void givenADiskThatIsFull_whenLinesAreWritten_thenItSaysThatNotAllAreThere() {
        Path full = Path.of("/dev/full");
        assumeThat(Files.isWritable(full)).as("%s", full).isTrue();
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "gpu", "--quick", "--lines", full.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).contains("--lines: not all could be written to " + full);
        assertThat(commandResult.out()).contains("out of pages");
    }

    @Test
    void givenSizes_whenRun_thenAFigureForEachSizeDirectionAndWay() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "gpu", "--quick", "--sizes", "--json");
        assertThat(commandResult.exitCode()).isZero();
        JsonMapper json = JsonMapper.builder().build();
        List<JsonNode> lines = commandResult.out().lines().map(json::readTree).toList();
        assertThat(lines).allSatisfy(line -> {
            assertThat(line.path("device").asString()).isNotBlank();
            assertThat(line.path("gigabytes").asDouble()).isPositive();
        });
        assertThat(lines)
                .filteredOn(line -> !line.path("way").asString().equals("kernel"))
                .hasSize(3 * 3 * 10)
                .extracting(line -> line.path("pieceBytes").asInt())
                .contains(4 << 10, 2 << 20);
        CommandRunner.CommandResult table = CommandRunner.run("bench", "gpu", "--quick", "--sizes");
        assertThat(table.out()).contains("2048 KiB", "to device, loop", "to host, batch", "within, coalesced");
    }
}
