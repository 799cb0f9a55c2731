package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Planning commands over several seeds of a generated trace.
@Tag("slow")
final class SeedsOptionTest {

    /// Student's t with two degrees of freedom, which 5 % exceed in absolute value.
    private static final double T_OF_THREE = 4.302652729911275;

    private static final String AGENTS = "agents:1:requests=300:context=20000";

    private static CommandRunner.CommandResult run(String command, String... more) {
        return CommandRunner.run(Stream.concat(Arrays.stream(command.split(" ")), Arrays.stream(more))
                .toArray(String[]::new));
    }

    private static CsvTable csv(String command) {
        CommandRunner.CommandResult result = run(command, "--format", "csv");
        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.err()).isEmpty();
        return CsvTable.parse(result.out());
    }

    /// All that does not depend on the machine.
    private static List<Map<String, String>> withoutTimes(Stream<Map<String, String>> rows) {
        return rows.map(row -> row.entrySet().stream()
                        .filter(entry -> !entry.getKey().equals("seconds"))
                        .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue)))
                .toList();
    }

    @Test
    void givenTheLastSeeds_whenMoreAreAskedFor_thenTheyAreRefused() {
        CommandRunner.CommandResult result =
                CommandRunner.run("replay", "--trace", "generated:" + Long.MAX_VALUE, "--seeds", "3");
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err()).contains("--seeds is '3', must be: within the seeds of 64 bits");
    }

    @Test
    void givenAFileOfTraceOut_whenReplayed_thenTheErrorNamesWhatReadsIt(@TempDir Path folder) throws IOException {
        Path file =
                Files.writeString(folder.resolve("captured.jsonl"), "{\"kvcache_trace\":1,\"host_bytes\":33554432}\n");
        CommandRunner.CommandResult result = CommandRunner.run("replay", "--trace", file.toString());
        assertThat(result.err()).contains("lab capture");
    }

    @Test
    void givenSeeds_whenReplayedToCsv_thenTheRowsOfEachSeedAloneAndTheirStatistics() {
        String command = "replay --policy lru,sieve --blocks 100 --trace ";
        CsvTable table = csv(command + AGENTS + " --seeds 3");
        assertThat(table.column("statistic"))
                .containsExactly(
                        "run",
                        "run",
                        "run",
                        "run",
                        "run",
                        "run",
                        "mean",
                        "ci95_low",
                        "ci95_high",
                        "mean",
                        "ci95_low",
                        "ci95_high");
        assertThat(table.column("seed")).containsExactly("1", "1", "2", "2", "3", "3", "", "", "", "", "", "");
        List<Map<String, String>> alone = Stream.of(1, 2, 3)
                .flatMap(seed -> csv(command + AGENTS.replace(":1:", ":" + seed + ":")).rows().stream())
                .toList();
        assertThat(withoutTimes(table.rows().stream().limit(6))).isEqualTo(withoutTimes(alone.stream()));

        List<Double> ratios = table.numbers("block_hit_ratio");
        for (int policy = 0; policy < 2; policy++) {
            double[] seeds = {ratios.get(policy), ratios.get(2 + policy), ratios.get(4 + policy)};
            double mean = (seeds[0] + seeds[1] + seeds[2]) / 3;
            double squares = DoubleStream.of(seeds)
                    .map(each -> (each - mean) * (each - mean))
                    .sum();
            double halfWidth = T_OF_THREE * Math.sqrt(squares / 2 / 3);
            assertThat(halfWidth).isPositive();
            assertThat(ratios.get(6 + 3 * policy)).isCloseTo(mean, within(1e-9));
            assertThat(ratios.get(7 + 3 * policy)).isCloseTo(mean - halfWidth, within(1e-9));
            assertThat(ratios.get(8 + 3 * policy)).isCloseTo(mean + halfWidth, within(1e-9));
        }
        assertThat(table.column("policy").subList(6, 12))
                .containsExactly("lru", "lru", "lru", "sieve", "sieve", "sieve");
        assertThat(table.column("trace").subList(6, 12)).containsOnly(AGENTS + " to " + AGENTS.replace(":1:", ":3:"));
        assertThat(table.column("blocks").subList(6, 12)).containsOnly("100");
    }

    @Test
    void givenSeeds_whenPoliciesAreComparedOnTwoTraces_thenCapacitiesAreMeansAndEachTraceHasItsOwnStatistics() {
        CsvTable table = csv("lab --policy lru --share 5 --seeds 2 --trace " + AGENTS + ",popular:4");
        assertThat(table.column("seed")).containsExactly("1", "2", "", "", "", "4", "5", "", "", "");
        List<Double> blocks = table.numbers("blocks");
        assertThat(blocks.get(0)).isNotEqualTo(blocks.get(1));
        assertThat(blocks.subList(2, 5)).containsOnly((blocks.get(0) + blocks.get(1)) / 2);
        assertThat(table.numbers("ttft_p99_seconds").get(7))
                .isCloseTo(
                        (table.numbers("ttft_p99_seconds").get(5)
                                        + table.numbers("ttft_p99_seconds").get(6))
                                / 2,
                        within(1e-12));
    }

    @Test
    void givenSeeds_whenPrintedAsText_thenOneLineForEachPolicyWithMeanAndInterval() {
        CommandRunner.CommandResult result =
                run("replay --trace " + AGENTS + " --seeds 2 --policy lru,sieve --blocks 100,200");
        assertThat(result.err()).isEmpty();
        assertThat(result.out().lines()).hasSize(2 + 4);
        assertThat(result.out())
                .startsWith(AGENTS + " to agents:2:requests=300:context=20000: mean of 2 seeds ± half of the 95 %")
                .containsPattern("(?m)^rule +blocks +policy +block hits +token hits +Belady ")
                .containsPattern("(?m)^reference +200 +sieve +\\d+\\.\\d\\d ± \\d+\\.\\d\\d % ");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "lab curve --share 5 --trace generated:3",
                "lab tiers --trace generated:7 --first 400 --policy lru --host 20 --disk 60 --admission always",
                "replay --blocks 200 --bytes 4KiB --trace " + AGENTS
            })
    void givenSeedsOfOtherCommands_whenRun_thenRunsAndStatistics(String command) {
        CommandRunner.CommandResult text = run(command + " --seeds 2");
        assertThat(text.exitCode()).as(text.err()).isZero();
        assertThat(text.out()).contains("mean of 2 seeds").containsPattern(" ± \\d+\\.\\d\\d %");
        CsvTable table = CsvTable.parse(run(command + " --seeds 2 --format csv").out());
        assertThat(table.column("statistic")).containsExactly("run", "run", "mean", "ci95_low", "ci95_high");
    }

    @Test
    void givenATraceThatIsNotGenerated_whenSeedsAreAsked_thenRefused(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("mine.jsonl"), "{\"tokens\": [1, 2, 3]}\n");
        for (String command : List.of("replay", "lab", "lab curve", "lab tiers")) {
            for (String trace : List.of(file.toString(), "conversation")) {
                CommandRunner.CommandResult refused = run(command + " --seeds 5 --trace " + trace);
                assertThat(refused.exitCode()).isEqualTo(2);
                assertThat(refused.err())
                        .contains("--seeds is '5', must be: left out for a trace that is not made from a seed, as ")
                        .contains("generated:SEED");
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 2 to 1000", "1001, 2 to 1000", "many, whole number"})
    void givenABadNumberOfSeeds_whenAsked_thenRefused(String number, String allowed) {
        CommandRunner.CommandResult refused = run("lab --trace generated --seeds " + number);
        assertThat(refused.exitCode()).isEqualTo(2);
        assertThat(refused.err()).contains("--seeds", "'" + number + "'", allowed);
    }

    @Test
    void givenSeedsAndAReport_whenAsked_thenRefused(@TempDir Path folder) {
        CommandRunner.CommandResult refused =
                run("lab --trace generated --seeds 2 --html " + folder.resolve("report.html"));
        assertThat(refused.exitCode()).isEqualTo(2);
        assertThat(refused.err()).contains("--seeds is '2', must be: left out where --html is given");
    }

    @ParameterizedTest
    @CsvSource({
        "generated, generated:7",
        "popular:2, popular:7",
        "hostile:3, hostile:7",
        "agents:requests=10, agents:7:requests=10",
        "mixed:4:requests=10:tool=5, mixed:7:requests=10:tool=5"
    })
    void givenAnotherSeed_whenASourceIsMadeOfIt_thenItIsThatWhichTheNameGives(String trace, String other)
            throws IOException {
        TraceSource.Seeded seeded = ((TraceSource.Seeded) TraceSource.parse(trace)).withSeed(7);
        assertThat(seeded).isEqualTo(TraceSource.parse(other));
        assertThat(seeded.load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}))
                        .name())
                .isEqualTo(seeded.name())
                .isEqualTo(other);
    }
}
