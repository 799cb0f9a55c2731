package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

final class BenchCommandTest {

    @Test
    void givenList_whenRun_thenSuitesQuestionsAndBudgetsAreNamed() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "list");
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out())
                .contains("core: ", "reopen: ", "match-whole", "<= 5000", "ratio >= 0.76", "How long does a match");
    }

    @ParameterizedTest
    @CsvSource({
        "cores,,cores,'core, codec, disk, layers, reopen, policy, server, transport, cluster, gpu, peers, list'",
        "core,nothing,nothing,match-whole"
    })
    void givenUnknownName_whenRun_thenUsageErrorNamesItAndWhatIsAllowed(
            String suite, String filter, String named, String allowed) {
        CommandRunner.CommandResult commandResult = filter == null
                ? CommandRunner.run("bench", suite)
                : CommandRunner.run("bench", suite, "--filter", filter);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.out()).isEmpty();
        assertThat(commandResult.err()).contains("'" + named + "'", allowed);
    }

    @Test
    void givenFolderForASuiteWithoutFiles_whenRun_thenUsageErrorSaysWhichTakesOne() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "core", "folder");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("only disk takes a DIR");
    }

    @Test
    void givenFolderThatIsNotThere_whenDiskIsRun_thenItIsNamedUnlessFioIsMissing(@TempDir Path folder) {
        Path missing = folder.resolve("missing");
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "disk", missing.toString());
        assertThat(commandResult.out()).isEmpty();
        if (commandResult.exitCode() == 2) {
            assertThat(commandResult.err()).contains("install fio (Debian: apt-get install fio)");
        } else {
            assertThat(commandResult.exitCode()).isEqualTo(1);
            assertThat(commandResult.err()).contains(missing + " is not a directory");
        }
    }

    @Test
    @Tag("slow")
    void givenOneQuestion_whenRunAsJson_thenOneLineWithAllFields() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "core", "--quick", "--json", "--filter", "hash-256");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        List<String> lines = commandResult.out().lines().toList();
        assertThat(lines).hasSize(1);
        JsonNode line = JsonMapper.builder().build().readTree(lines.getFirst());
        assertThat(line.propertyNames())
                .containsExactlyInAnyOrder(
                        "name", "value", "unit", "against", "againstValue", "ratio", "budget", "ok", "runs");
        assertThat(line.get("name").asString()).isEqualTo("hash-256");
        assertThat(line.get("value").asDouble()).isPositive();
        assertThat(line.get("runs").asInt()).isEqualTo(1);
    }

    @Test
    @Tag("slow")
    @Tag("traces")
    void givenHitsThatABenchmarkCounts_whenRunAsJson_thenTheirRatioStandsBesideBeladys() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "policy", "--quick", "--json", "--filter", "hits-lru-3");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        JsonNode line = JsonMapper.builder().build().readTree(commandResult.out());
        assertThat(line.get("unit").asString()).isEqualTo("%");
        assertThat(line.get("value").asDouble())
                .isPositive()
                .isLessThan(line.get("againstValue").asDouble());
    }

    @Test
    @Tag("slow")
    void givenFio_whenOneQuestionOfDiskIsRun_thenItNamesThePathAndLeavesNothing(@TempDir Path folder)
            throws IOException {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "disk", folder.toString(), "--quick", "--json", "--filter", "queue-read-4m");
        assumeThat(commandResult.err())
                .as("fio is here; else apt-get install fio")
                .doesNotContain("install fio");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        JsonNode line = JsonMapper.builder().build().readTree(commandResult.out());
        assertThat(line.get("value").asDouble()).isPositive().isLessThanOrEqualTo(8);
        assertThat(line.get("path").asString()).isNotBlank();
        try (Stream<Path> left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }
}
