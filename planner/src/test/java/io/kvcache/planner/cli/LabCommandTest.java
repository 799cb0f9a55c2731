package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.CacheServer;
import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Tag("slow")
final class LabCommandTest {

    /// Blocks of 16 tokens that fill whole slabs.
    private static final int SLABS_OF_TOKENS = 3 * 512 * 16;

    /// For what does not depend on the trace.
    private static final String SMALL_TRACE = "mixed:2:requests=400:context=20000";

    @Test
    void givenPoliciesAndHints_whenCompared_thenARowForEachAtEachCapacity() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "lab",
                "--trace",
                "generated:7",
                "--share",
                "2,10%",
                "--policy",
                "lru,importance",
                "--look-ahead",
                "32");
        assertThat(commandResult.err()).isEmpty();
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out().lines().filter(line -> line.contains(" importance ")))
                .hasSize(2);
        assertThat(commandResult.out().lines().filter(line -> line.contains(" importance+32 ")))
                .hasSize(2);
        assertThat(commandResult.out())
                .contains(
                        "generated:7: 10,000 requests",
                        "of the gap",
                        "declined again counts again",
                        "+N: the policy knows");
    }

    @Test
    void givenCsvAndJson_whenCompared_thenTheSameRows() {
        String[] asked = {"lab", "--trace", "generated:3", "--share", "5", "--policy", "lru,belady-bypass", "--format"};
        List<String> csv = run(asked, "csv");
        assertThat(csv.getFirst()).startsWith("trace,rule,policy,share,blocks,block_hit_ratio,");
        List<String> json = run(asked, "json");
        assertThat(json).hasSize(csv.size() - 1).hasSize(2);
        JsonNode bound = JsonMapper.builder().build().readTree(json.get(1));
        assertThat(bound.propertyNames()).hasSize(csv.getFirst().split(",").length);
        assertThat(bound.get("gapClosed").asDouble()).isEqualTo(1);
        assertThat(csv.get(2)).startsWith("generated:3,reference,belady-bypass,0.05," + bound.get("blocks") + ",");
        assertThat(csv.get(2)).contains("," + bound.get("blockHitRatio") + ",");
    }

    @Test
    void givenAFileForAReport_whenCompared_thenItHasTheRowsThatWerePrinted(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("report.html");
        String[] asked = {"lab", "--trace", "generated:3", "--share", "5", "--policy", "lru,sieve", "--html"};
        String[] all = Arrays.copyOf(asked, asked.length + 1);
        all[asked.length] = file.toString();
        CommandRunner.CommandResult commandResult = CommandRunner.run(all);
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        CommandRunner.CommandResult csv = CommandRunner.run(
                "lab", "--trace", "generated:3", "--share", "5", "--policy", "lru", "--format", "csv");
        String printed = commandResult
                .out()
                .lines()
                .filter(line -> line.contains("sieve"))
                .findFirst()
                .orElseThrow();
        String hits = Pattern.compile("\\d+\\.\\d\\d %")
                .matcher(printed)
                .results()
                .findFirst()
                .orElseThrow()
                .group();
        assertThat(Files.readString(file))
                .contains("generated:3", ">sieve</td>", ">" + hits + "</td>", file.toString())
                .containsPattern(
                        "Made by ./kvcache lab --trace generated:3 .* with KVCache .+, commit \\S+, on 20\\d\\d-")
                .contains("SHA-256 of the trace "
                        + CsvTable.parse(csv.out()).column("trace_sha256").getFirst());
    }

    @Test
    void givenTwoTiers_whenCompared_thenHitsSaveTimeAndAdmissionSavesWrites(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("tiers.html");
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "lab",
                "tiers",
                "--trace",
                "generated:7",
                "--first",
                "400",
                "--host",
                "20",
                "--disk",
                "60",
                "--policy",
                "lru,mooncake",
                "--modelled",
                "--admission",
                "always,second-hit",
                "--json",
                "--html",
                file.toString());
        assertThat(commandResult.err()).startsWith("kvcache: host memory comes in whole slabs");
        assertThat(commandResult.exitCode()).isZero();
        assertThat(Files.readString(file)).contains(">second-hit</td>", "Time to the first token");
        List<JsonNode> rows = commandResult
                .out()
                .lines()
                .map(line -> JsonMapper.builder().build().readTree(line))
                .toList();
        assertThat(rows.stream()
                        .map(row -> row.get("policy").asString() + " "
                                + row.get("run").asString()))
                .containsExactly("lru store", "lru store", "lru model", "mooncake model");
        for (JsonNode row : rows) {
            double hits = row.get("blockHitRatio").asDouble();
            assertThat(hits).isGreaterThanOrEqualTo(row.get("hostHitRatio").asDouble());
            assertThat(hits).isBetween(0.05, 0.95);
            assertThat(row.get("prefillSecondsSaved").asDouble())
                    .isGreaterThan(row.get("loadSeconds").asDouble());
            assertThat(row.get("ttftP99Seconds").asDouble())
                    .isGreaterThan(row.get("ttftP50Seconds").asDouble());
            assertThat(row.get("wrongBlocks").asInt()).isZero();
        }
        assertThat(rows.get(1).get("writtenOfPut").asDouble())
                .isLessThan(rows.get(0).get("writtenOfPut").asDouble());
    }

    @Test
    void givenADiskSmallerThanHostMemoryInSlabs_whenTiersAreCompared_thenRefusedWithBothSizesAndWhatFits() {
        String[] asked = {"lab", "tiers", "--trace", "agents:1:requests=250", "--policy", "lru", "--host", "2", "--disk"
        };
        CommandRunner.CommandResult small = CommandRunner.run(append(asked, "1%"));
        assertThat(small.exitCode()).isEqualTo(2);
        assertThat(small.out()).isEmpty();
        assertThat(small.err())
                .containsPattern("--disk is '1%' \\(room for [0-9]+ of the blocks\\), must be: at least ")
                .containsPattern(
                        "Host memory comes in whole slabs, here with room for [0-9]+ blocks: .* --host is '2'");
        Matcher fits = Pattern.compile("at least (\\S+)\\. ").matcher(small.err());
        assertThat(fits.find()).isTrue();
        CommandRunner.CommandResult enough = CommandRunner.run(append(asked, fits.group(1), "--admission", "always"));
        assertThat(enough.exitCode()).as(enough.err()).isZero();
        assertThat(enough.out()).contains("run: store is", "of gap: the way", "blocks of put: ");
    }

    @Test
    void givenATraceSmallerThanASlab_whenTiersAreCompared_thenToldThatNoDiskFits() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("lab", "tiers", "--trace", "generated:7", "--first", "2", "--policy", "lru");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("no disk of up to 100 is here", "Or replay more requests");
    }

    private static String[] append(String[] words, String... more) {
        return Stream.concat(Arrays.stream(words), Arrays.stream(more)).toArray(String[]::new);
    }

    @ParameterizedTest
    @CsvSource({
        "--host,0",
        "--disk,101",
        "--gpus,0",
        "--gpu,tpu",
        "--first,0",
        "--policy,best",
        "--admission,none",
        "--model,gpt",
        "--format,xml",
        "--html,/nowhere/report.html"
    })
    void givenABadChoiceForTiers_whenRun_thenTheErrorNamesOptionAndValue(String option, String value) {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("lab", "tiers", "--trace", "generated", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains(option).contains(value).contains("must be");
    }

    @Test
    void givenSensitivity_whenCompared_thenEachConstantHalvedAndDoubled() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "lab", "--trace", SMALL_TRACE, "--share", "3", "--policy", "importance", "--sensitivity");
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out())
                .contains("half-life=32.0", "half-life=128.0", "class-events=2000.0", "ghosts=8.0");
    }

    @ParameterizedTest
    @CsvSource(
            value = {
                "--share;0",
                "--share;101",
                "--share;101%",
                "--share;x",
                "--look-ahead;0",
                "--format;html",
                "--policy;best",
                "--rule;none"
            },
            delimiter = ';')
    void givenBadChoice_whenRun_thenTheErrorNamesOptionAndValue(String option, String value) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("lab", "--trace", "generated", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err())
                .contains(option)
                .contains("'" + value + "'")
                .contains("must be");
    }

    @Test
    void givenTarget_whenSized_thenMemoryForBothPolicies() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("size", "--trace", SMALL_TRACE, "--target-hit", "0.3");
        assertThat(commandResult.err()).isEmpty();
        assertThat(commandResult.exitCode()).isZero();
        assertThat(commandResult.out()).contains("lru", "importance", "GiB of llama-3-8b");
    }

    @Test
    void givenATraceWithoutTimes_whenComparedAndSized_thenThatIsSaidAndNothingFails(@TempDir Path folder)
            throws IOException {
        Path trace = folder.resolve("tokens.jsonl");
        String ids =
                IntStream.range(0, SLABS_OF_TOKENS).mapToObj(String::valueOf).collect(Collectors.joining(","));
        Files.writeString(trace, ("{\"tokens\": [" + ids + "]}\n").repeat(6));
        CommandRunner.CommandResult lab =
                CommandRunner.run("lab", "--trace", trace.toString(), "--share", "50", "--policy", "lru");
        assertThat(lab.exitCode()).isZero();
        assertThat(lab.out()).contains("all come at once");
        CommandRunner.CommandResult tiers = CommandRunner.run(
                "lab",
                "tiers",
                "--trace",
                trace.toString(),
                "--host",
                "100",
                "--disk",
                "100",
                "--policy",
                "lru,mooncake",
                "--modelled",
                "--admission",
                "always");
        assertThat(tiers.exitCode()).as(tiers.err()).isZero();
        assertThat(tiers.err()).contains("all come at once");
        assertThat(tiers.out()).contains(" 0 B").containsPattern("mooncake +model");
        CommandRunner.CommandResult size =
                CommandRunner.run("size", "--trace", trace.toString(), "--target-hit", "0.3", "--host", "0");
        assertThat(size.exitCode()).isZero();
        assertThat(size.out()).contains("The trace is short");
    }

    @Test
    void givenPromptsBelowABlock_whenTiersAreCompared_thenTheErrorSaysSo(@TempDir Path folder) throws IOException {
        Path trace = Files.writeString(folder.resolve("short.jsonl"), "{\"tokens\": [1, 2, 3]}\n");
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("lab", "tiers", "--trace", trace.toString(), "--policy", "mooncake");
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err())
                .isEqualTo(
                        "kvcache: no prompt of the trace has a full block, so there is nothing to keep in any tier\n");
    }

    @Test
    void givenAFolderInPlaceOfATrace_whenRun_thenTheErrorNamesIt(@TempDir Path folder) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("lab", "--trace", folder.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).isEqualTo("kvcache: " + folder + ": is a directory; a trace is a file\n");
    }

    @Test
    void givenTargetThatNothingReaches_whenSized_thenTheCeilingAndFailure() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("size", "--trace", "generated:4", "--target-hit", "0.99");
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.out()).contains("cannot reach 99.00 %", "with memory for everything");
    }

    @ParameterizedTest
    @CsvSource({
        "--target-hit,0",
        "--gpu,tpu",
        "--gpus,0",
        "--host,much",
        "--instances,65",
        "--route,nearest",
        "--model,gpt",
        "--model,deepseek-v3"
    })
    void givenABadChoiceForSize_whenRun_thenTheErrorNamesTheValueAndWhatMayBe(String option, String value) {
        String[] target = option.equals("--target-hit") ? new String[0] : new String[] {"--target-hit", "0.3"};
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                Stream.concat(Stream.of("size", "--trace", "generated", option, value), Arrays.stream(target))
                        .toArray(String[]::new));
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains(value).contains("must be");
    }

    @Test
    void givenInstances_whenSized_thenEveryRouteIsComparedWithOneSharedCache() {
        CommandRunner.CommandResult commandResult = CommandRunner.run(
                "size", "--trace", SMALL_TRACE, "--target-hit", "0.3", "--instances", "4", "--host", "16GiB", "--json");
        assertThat(commandResult.exitCode()).isZero();
        JsonNode answer = JsonMapper.builder().build().readTree(commandResult.out());
        for (JsonNode row : answer.get("rows")) {
            long bytes = 0;
            double found = 0;
            for (JsonNode tier : row.get("tiers")) {
                bytes += tier.get("bytes").asLong();
                found += tier.get("hitRatio").asDouble();
            }
            assertThat(bytes).isEqualTo(row.get("bytes").asLong());
            assertThat(found).isGreaterThanOrEqualTo(0.3);
        }
        assertThat(answer.get("fleets")).hasSize(3);
        for (JsonNode fleet : answer.get("fleets")) {
            assertThat(fleet.get("sameMemoryHitRatio").asDouble()).isLessThan(0.3);
        }
    }

    @Test
    void givenACurve_whenDrawnWholeAndFromASample_thenTheOneLiesWithinTheOther() {
        String[] asked = {"lab", "curve", "--trace", "generated:5", "--share", "5,20,100", "--json", "--sample"};
        List<String> whole = run(asked, "100");
        List<String> part = run(asked, "20");
        assertThat(whole).hasSize(3);
        for (int i = 0; i < whole.size(); i++) {
            JsonNode exact = JsonMapper.builder().build().readTree(whole.get(i));
            JsonNode estimate = JsonMapper.builder().build().readTree(part.get(i));
            assertThat(exact.get("exact").asBoolean()).isTrue();
            assertThat(estimate.get("exact").asBoolean()).isFalse();
            assertThat(exact.get("blockHitRatio").asDouble())
                    .isBetween(
                            estimate.get("low").asDouble(), estimate.get("high").asDouble());
            assertThat(estimate.get("sampledBlocks").asInt())
                    .isLessThan(exact.get("sampledBlocks").asInt() / 4);
        }
        assertThat(run(new String[] {"lab", "curve", "--share", "5", "--trace"}, "generated:5"))
                .anyMatch(line -> line.startsWith("5.0 %"));
    }

    @ParameterizedTest
    @CsvSource({"--sample,0", "--sample,101", "--share,0", "--model,gpt", "--rule,none", "--warmup,-1"})
    void givenABadChoiceForACurve_whenRun_thenTheErrorNamesOptionAndValue(String option, String value) {
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("lab", "curve", "--trace", "generated", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains(option).contains(value).contains("must be");
    }

    private static List<String> run(String[] arguments, String format) {
        String[] all = Arrays.copyOf(arguments, arguments.length + 1);
        all[arguments.length] = format;
        CommandRunner.CommandResult commandResult = CommandRunner.run(all);
        assertThat(commandResult.exitCode()).isZero();
        return commandResult.out().lines().toList();
    }

    @ParameterizedTest
    @CsvSource({"--host-bytes,1MiB", "--policy,best"})
    void givenABadChoiceForACapture_whenReplayed_thenTheErrorNamesOptionAndValue(String option, String value) {
        CommandRunner.CommandResult commandResult = CommandRunner.run("lab", "capture", "trace.jsonl", option, value);
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains(option).contains(value).contains("must be");
    }

    @Test
    void givenTheTraceOfAServer_whenReplayed_thenItFindsWhatTheServerFound(@TempDir Path folder) throws Exception {
        Path trace = folder.resolve("trace.jsonl");
        Map<String, ConfigReader.Option> options = Map.of(
                "listen.port", new ConfigReader.Option("port", "0"),
                "transport.listen", new ConfigReader.Option("transport", "off"),
                "memory.host_bytes", new ConfigReader.Option("host", "64MiB"),
                "trace.out", new ConfigReader.Option("trace", trace.toString()));
        ServerConfig config =
                new ConfigReader(HostResources.detect(), Map.of()).read(ConfigReader.Source.NONE, options);
        try (CacheServer server = CacheServer.start(config);
                RespClient client = new RespClient(
                        ClientConfig.open("127.0.0.1", server.address().getPort()))) {
            client.set("k", new byte[1]);
            assertThat(client.call("GET", "k").isPresent()).isTrue();
        }

        CommandRunner.CommandResult commandResult =
                CommandRunner.run("lab", "capture", trace.toString(), "--policy", "lru");

        assertThat(commandResult.out()).as(commandResult.err()).containsPattern("64 MiB +lru +2 +50.00 % +50.00 %");
    }

    @Test
    void givenNoSuchCapture_whenReplayed_thenThatIsSaid() {
        CommandRunner.CommandResult commandResult = CommandRunner.run("lab", "capture", "/nowhere/trace.jsonl");
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).isEqualTo("kvcache: no such file: /nowhere/trace.jsonl\n");
    }
}
