package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.planner.cli.PlanningOptions.PolicyOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Tag("slow")
final class ReplayCommandTest {

    private static final String LINE =
            "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [3, 9]}\n";

    @TempDir
    private Path folder;

    @Test
    void givenGeneratedTrace_whenReplayed_thenARowForEachPolicyAndCapacity() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay", "--trace", "generated:7", "--policy", "lru,sieve", "--blocks", "500,2000", "--rule", "both");
        assertThat(commandResult.err()).isEmpty();
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out().lines().filter(line -> line.contains(" lru ")))
                .hasSize(4);
        assertThat(commandResult.out().lines().filter(line -> line.contains(" sieve ")))
                .hasSize(4);
        assertThat(commandResult.out()).contains("rule: reference", "rule: full-blocks", "of the gap", "2,000");
    }

    @Test
    void givenNoCapacityAndASmallTrace_whenReplayed_thenOneThatHoldsAllIsTheLargest() throws IOException {
        Path trace = Files.writeString(folder.resolve("small.jsonl"), LINE.repeat(3));
        CommandRunner.CommandResult small =
                CommandRunner.run("replay", "--trace", trace.toString(), "--policy", "lru", "--json");
        assertThat(small.exitCode()).as(small.err()).isZero();
        assertThat(small.out().lines()).singleElement().asString().contains("\"blocks\":1000,");
        CommandRunner.CommandResult asked = CommandRunner.run(
                "replay", "--trace", trace.toString(), "--policy", "lru", "--json", "--blocks", "1000,5000");
        assertThat(asked.out().lines()).hasSize(2);
        CommandRunner.CommandResult larger =
                CommandRunner.run("replay", "--trace", "agents:1:requests=500", "--policy", "lru", "--json");
        assertThat(larger.out().lines()).as("1,701 distinct blocks").hasSize(2);
    }

    @Test
    void givenAPolicyOfAnothersByClass_whenReplayed_thenItsRowStandsBesideTheOthers() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay",
                "--trace",
                "generated:7",
                "--policy",
                "lru,belady",
                "--policy-class",
                "io.kvcache.planner.baseline.DynamicAgingPolicy$LfuDynamicAging",
                "--blocks",
                "500");
        assertThat(commandResult.err()).isEmpty();
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out()).contains(" lru ", " lfu-da ", " belady ");
    }

    @Test
    void givenAClassThatIsNoPolicy_whenReplayed_thenTheErrorNamesIt() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay", "--trace", "generated:7", "--policy-class", "java.lang.String", "--blocks", "500");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("--policy-class: policy class java.lang.String implements neither");
    }

    @Test
    void givenAClassThatIsMissing_whenReplayed_thenTheErrorNamesTheVariableThatAddsIt() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay", "--trace", "generated:7", "--policy-class", "com.example.Absent", "--blocks", "500");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("com.example.Absent is not on the class path", "KVCACHE_CLASSPATH");
    }

    @Test
    void givenAJarThatDoesNotExist_whenTheAddedPathIsDescribed_thenItIsNamed(@TempDir Path folder) {
        assertThat(PolicyOptions.describeAddedPath(folder + ":" + folder + "/my.jar"))
                .isEqualTo("KVCACHE_CLASSPATH names files that do not exist: " + folder + "/my.jar");
        assertThat(PolicyOptions.describeAddedPath(folder + ":lib/*")).contains("put a jar or folder with the class");
        assertThat(PolicyOptions.describeAddedPath(null)).contains("KVCACHE_CLASSPATH is not set");
    }

    @Test
    void givenAMisspeltTrace_whenReplayed_thenTheErrorListsTheNames() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("replay", "--trace", "conversaton");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err())
                .startsWith("kvcache replay: no such file: conversaton; a trace is a file, conversation, synthetic");
    }

    @Test
    void givenCapacityInBytes_whenReplayed_thenBlocksAndBytesAreShown() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("replay", "--trace", "generated", "--policy", "lru", "--capacity", "64GiB");
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out()).contains("1,024", "64 GiB", "llama-3-8b");
    }

    @Test
    void givenJson_whenReplayed_thenOneObjectALineWithAllFields() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay", "--trace", "generated:3", "--policy", "lru,belady", "--blocks", "900", "--json");
        assertThat(commandResult.exitCode()).isZero();
        List<JsonNode> lines = commandResult
                .out()
                .lines()
                .map(line -> JsonMapper.builder().build().readTree(line))
                .toList();
        assertThat(lines).hasSize(2);
        assertThat(lines.getFirst().propertyNames())
                .containsExactlyInAnyOrder(
                        "trace",
                        "rule",
                        "warmupRequests",
                        "policy",
                        "blocks",
                        "model",
                        "bytes",
                        "blockAccesses",
                        "blockHits",
                        "blockHitRatio",
                        "tokenHitRatio",
                        "lruHitRatio",
                        "beladyHitRatio",
                        "beladyBypassHitRatio",
                        "gapClosed",
                        "seconds",
                        "seed",
                        "statistic",
                        "kvcacheVersion",
                        "traceSha256");
        assertThat(lines.getFirst().get("policy").asString()).isEqualTo("lru");
        assertThat(lines.getLast().get("blockHitRatio"))
                .isEqualTo(lines.getLast().get("beladyHitRatio"));
    }

    @Test
    void givenAnUnknownRuleForWrites_whenRun_thenUsageErrorNamesItAndWhatIsAllowed() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("replay", "--disk", folder + ":64MiB", "--admission", "never");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("never", "always, second-hit");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--policy|lru,random|random|lru, fifo, lfu-da, gdsf, slru, s3-fifo, sieve, importance, w-tinylfu",
                "--blocks|0|0|at least 1",
                "--blocks|many|many|whole number",
                "--capacity|64 gallons|64 gallons|GiB",
                "--capacity|1MiB|1 MiB|64 MiB each for llama-3-8b",
                "--model|gpt-9|gpt-9|llama-3-8b, llama-3-70b, qwen3-32b, deepseek-v3, llama-4-scout",
                "--rule|none|none|full-blocks",
                "--malformed|mend|mend|skip, refuse",
                "--warmup|-1|-1|at least 0",
                "--trace|generated:x|generated:x|generated:SEED",
                "--polisy|lru|--polisy|--policy",
                "--disk|folder|folder|20000blocks",
                "--disk|folder:1MiB|1MiB|20000blocks",
                "--disk|folder:much|much|GiB",
            })
    void givenBadValue_whenRun_thenUsageErrorNamesItAndWhatIsAllowed(
            String option, String value, String named, String allowed) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("replay", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.out()).isEmpty();
        assertThat(commandResult.err()).contains(named, allowed);
    }

    @Test
    void givenAFolderInPlaceOfATrace_whenRun_thenFailureNamesIt() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("replay", "--trace", folder.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).isEqualTo("kvcache: " + folder + ": is a directory; a trace is a file\n");
    }

    @Test
    void givenALineThatEndsTooSoon_whenRun_thenTheReasonHasNothingOfTheParser() throws IOException {
        Path file = Files.writeString(folder.resolve("torn.jsonl"), "{\"hash_ids\": [1, 2");
        CommandRunner.CommandResult commandResult = CommandRunner.run("replay", "--trace", file.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err())
                .startsWith("kvcache: " + file + ":1: not JSON: ")
                .doesNotContain("REDACTED", "Source");
    }

    @Test
    void givenAWarmupOfAllRequests_whenRun_thenUsageErrorSaysHowManyThereAre() throws IOException {
        Path file = Files.writeString(folder.resolve("short.jsonl"), LINE + LINE);
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("replay", "--trace", file.toString(), "--warmup", "2");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("--warmup is '2', must be: below the 2 requests of short");
    }

    @Test
    void givenATraceOfFullBlocksOnly_whenRun_thenItsTailsCountAsNeverCachedAndThatIsSaidOnce() throws IOException {
        String full = "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [3]}\n";
        Path file = Files.writeString(folder.resolve("full.jsonl"), full + full + full);
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay",
                "--trace",
                file.toString(),
                "--policy",
                "lru",
                "--blocks",
                "9,10",
                "--rule",
                "both",
                "--json");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        assertThat(commandResult.err())
                .containsOnlyOnce("full has ids of full blocks only: 264 of 1,800 prompt tokens lie behind them");
        double found = 2 * 512 / 1800.0;
        assertThat(commandResult
                        .out()
                        .lines()
                        .map(line -> JsonMapper.builder().build().readTree(line)))
                .isNotEmpty()
                .allSatisfy(
                        line -> assertThat(line.get("tokenHitRatio").asDouble()).isEqualTo(found));
    }

    @Test
    void givenMoreMemoryThanThereIs_whenRun_thenFailureIsOneLine() throws IOException {
        Path file = Files.writeString(folder.resolve("short.jsonl"), LINE + LINE);
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("replay", "--trace", file.toString(), "--bytes", "256MiB", "--blocks", "1000000");
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).startsWith("kvcache: Cannot reserve ").hasLineCount(1);
    }

    @Test
    void givenMoreBlocksThanAStoreTakes_whenRun_thenUsageErrorSaysHowMany() throws IOException {
        Path file = Files.writeString(folder.resolve("short.jsonl"), LINE + LINE);
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("replay", "--trace", file.toString(), "--bytes", "64KiB", "--blocks", "2000000000");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err())
                .contains("--blocks is '2000000000', must be: up to 1073741824 where the real store");
    }

    @Test
    void givenNoSuchFile_whenRun_thenFailureNamesIt() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay", "--trace", folder.resolve("absent.jsonl").toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).contains("no such file", "absent.jsonl");
        assertThat(commandResult.err().lines()).hasSize(1);
    }

    @Test
    void givenMalformedLine_whenRun_thenRefusedOrSkippedByChoice() throws IOException {
        Path file = Files.writeString(folder.resolve("torn.jsonl"), LINE + "{\"timestamp\": 1\n" + LINE);
        CommandRunner.CommandResult refused = CommandRunner.run("replay", "--trace", file.toString());
        assertThat(refused.exitCode()).isEqualTo(1);
        assertThat(refused.err()).contains("torn.jsonl:2: not JSON");

        CommandRunner.CommandResult skipped = CommandRunner.run(
                "replay", "--trace", file.toString(), "--malformed", "skip", "--policy", "lru", "--blocks", "9");
        assertThat(skipped.exitCode()).isZero();
        assertThat(skipped.err()).contains("skipped line 2");
        assertThat(skipped.out()).contains("torn: 2 requests").contains("50.00 %");
    }

    @Test
    void givenADisk_whenReplayed_thenHitsByTierAndWritesAreShownAndNothingIsLeft() throws IOException {
        Path file = Files.writeString(folder.resolve("two.jsonl"), LINE + LINE);
        Path disk = folder.resolve("disk");
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay",
                "--trace",
                file.toString(),
                "--blocks",
                "9",
                "--bytes",
                "4KiB",
                "--disk",
                disk + ":500blocks");
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out())
                .contains("writes saved", "one LRU", "did not come")
                .containsPattern("(?m)^reference +9 +500 +\\S+ +always +50.00 % +50.00 % +0.00 % ")
                .containsPattern("(?m)^reference +9 +500 +\\S+ +second-hit +50.00 % ");
        assertThat(disk).doesNotExist();
    }

    @Test
    void givenNumbersThatLookLikeMistakes_whenPrinted_thenEachIsExplained() {
        assertThat(DiskReplayRunner.remarks(0, 0)).isEmpty();
        assertThat(DiskReplayRunner.remarks(-0.1, 0)).singleElement().asString().startsWith("less than 0 % saved");
        assertThat(DiskReplayRunner.remarks(0.1, 3)).singleElement().asString().startsWith("did not come: ");
    }

    @Test
    void givenADirectoryWithSomethingInIt_whenReplayedOverIt_thenItIsLeftAlone() throws IOException {
        Path file = Files.writeString(folder.resolve("two.jsonl"), LINE + LINE);
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("replay", "--trace", file.toString(), "--blocks", "9", "--disk", folder + ":64MiB");
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).contains("is not empty");
        assertThat(file).exists();
    }

    @Test
    void givenWarmup_whenRun_thenTheFirstRequestsDoNotCount() throws IOException {
        Path file = Files.writeString(folder.resolve("two.jsonl"), LINE + LINE);
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "replay", "--trace", file.toString(), "--warmup", "1", "--policy", "lru", "--blocks", "9");
        assertThat(commandResult.out()).contains("100.00 %");
    }
}
