package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

final class BenchCommandTest {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    @Test
    void givenList_whenRun_thenSuitesQuestionsAndBudgetsAreNamed() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "list");
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out())
                .contains(
                        "core: ",
                        "reopen: ",
                        "match-whole",
                        "<= 5000",
                        "ratio >= 0.76",
                        "match of 8,192 resident blocks",
                        "gpu: ");
    }

    @ParameterizedTest
    @CsvSource({
        "cores,,cores,'core, codec, disk, layers, reopen, policy, server, transport, cluster, gpu, pairs, peers, list'",
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
        assertThat(commandResult.err()).contains("only disk and reopen take a DIR");
    }

    @ParameterizedTest
    @CsvSource({
        "server,nothing,'values, newcomer, allocation, start, soak'",
        "transport,HEAP,'tcp, aeron, udp, ucx, shared, staged, match'",
        "core,tcp,'none, as core has none'"
    })
    void givenAPartThatIsNotThere_whenRun_thenUsageErrorNamesThoseOfTheSuite(
            String suite, String part, String allowed) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", suite, "--part", part);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("'" + part + "'", allowed);
    }

    @Test
    void givenFolderThatIsNotThere_whenDiskIsRun_thenItIsNamed(@TempDir Path folder) {
        Path missing = folder.resolve("missing");
        CommandRunner.CommandResult commandResult = CommandRunner.run("bench", "disk", missing.toString());
        assertThat(commandResult.out()).isEmpty();
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).contains(missing + " is not a directory");
    }

    @Test
    @Tag("slow")
    void givenOneQuestion_whenRunAsJson_thenOneLineWithAllFields() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "core", "--quick", "--json", "--filter", "hash-256");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        List<String> lines = commandResult.out().lines().toList();
        assertThat(lines).hasSize(1);
        JsonNode line = JSON.readTree(lines.getFirst());
        assertThat(line.propertyNames())
                .containsExactlyInAnyOrder(
                        "name", "value", "unit", "against", "againstValue", "ratio", "budget", "ok", "runs");
        assertThat(line.get("name").asString()).isEqualTo("hash-256");
        assertThat(line.get("value").asDouble()).isPositive();
        assertThat(line.get("runs").asInt()).isEqualTo(1);
    }

    @Test
    @Tag("slow")
    void givenOneFigureOfDisk_whenRun_thenItNamesThePathAndLeavesNothing(@TempDir Path folder) throws IOException {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "disk", folder.toString(), "--quick", "--filter", "disk-read-4m");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        assertThat(commandResult.out().lines())
                .anyMatch(line -> line.matches("disk-read-4m +[0-9.]+ GB/s +- +- +ok"))
                .contains("Medians of rounds: 1. A ratio is the median of the rounds' own.");
        assertThat(commandResult.err()).contains("disk-read-4m by ");
        try (Stream<Path> left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }

    @Test
    @Tag("nightly")
    void givenPartsOfOurServerAlone_whenRunQuickly_thenEachHasItsFigures() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "server", "--quick", "--json", "--part", "start,allocation");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        Map<String, Double> figures = commandResult
                .out()
                .lines()
                .map(JSON::readTree)
                .collect(Collectors.toMap(
                        line -> line.path("name").asString(),
                        line -> line.path("value").doubleValue()));
        assertThat(figures.keySet())
                .containsExactlyInAnyOrder("start-get", "alloc-4k", "alloc-64k", "alloc-1m", "alloc-4m", "alloc-32m");
        assertThat(figures.get("start-get")).isPositive();
        assertThat(figures.get("alloc-32m"))
                .as("bytes of heap for a GET of 32 MiB, were it to pass there")
                .isLessThan(1 << 20);
    }

    @Test
    @Tag("nightly")
    void givenATransport_whenRunQuickly_thenEachTransferHasItsFigures() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("bench", "transport", "--quick", "--json", "--part", "SHARED,match");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        assertThat(commandResult.out().lines().map(JSON::readTree))
                .extracting(line -> line.path("name").asString())
                .contains("match-1024-tcp-told-p50", "match-1024-aeron-new-p99", "match-1024-tcp-new-heap")
                .doesNotHaveDuplicates();
    }
}
