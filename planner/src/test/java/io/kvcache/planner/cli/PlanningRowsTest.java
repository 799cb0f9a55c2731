package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.planner.report.Column;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.server.cli.Version;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The rows that planning commands print for programs.
@Tag("slow")
final class PlanningRowsTest {

    private static final String TRACE = "agents:1:requests=300:context=20000";

    /// Fields that are the same in each run of a command.
    private static final List<String> SAME = List.of("trace", "policy", "rule", "blockHitRatio", "hitRatio");

    private static final String CAPTURE = """
            {"kvcache_trace":1,"host_bytes":33554432}
            {"ns":0,"blocks":false}
            {"op":"put","ns":0,"ids":[1],"bytes":9,"replaces":false}
            {"op":"get","ns":0,"ids":[1],"bytes":9,"found":1}
            """;

    @TempDir
    private Path folder = Path.of("");

    private static String out(String command, String... more) {
        CommandRunner.CommandResult result =
                CommandRunner.run(Stream.concat(Arrays.stream(command.split(" ")), Arrays.stream(more))
                        .toArray(String[]::new));
        assertThat(result.exitCode()).as(result.err()).isZero();
        return result.out();
    }

    private static CsvTable csv(String command) {
        return CsvTable.parse(out(command, "--format", "csv"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "replay --trace " + TRACE + " --policy lru,sieve --blocks 100,900",
                "replay --trace " + TRACE + " --bytes 4KiB --blocks 500",
                "lab --trace " + TRACE + " --policy lru,sieve --share 5,20",
                "lab tiers --trace generated:7 --first 400 --policy lru --host 20 --disk 60 --admission always",
                "lab curve --trace " + TRACE + " --share 5,20",
                "lab states --model qwen3-next-80b-a3b --capacity 1GiB,2GiB --states ends,free --trace " + TRACE,
                "sim --placement --trace " + TRACE + " --nodes 1,2 --blocks 500",
            })
    void givenACommand_whenItPrintsCsvAndJson_thenBothHaveTheSameRows(String command) {
        CsvTable table = csv(command);
        List<JsonNode> json = out(command, "--json")
                .lines()
                .map(line -> JsonMapper.builder().build().readTree(line))
                .toList();
        assertThat(table.columns())
                .startsWith("trace")
                .containsAnyOf("policy", "states")
                .doesNotHaveDuplicates();
        assertThat(table.columns()).containsAnyOf("blocks", "host_blocks", "capacity_bytes");
        assertThat(table.columns()).endsWith("seed", "statistic", "kvcache_version", "trace_sha256");
        assertThat(table.column("kvcache_version")).containsOnly(Version.text());
        assertThat(table.column("trace_sha256")).allMatch(digest -> digest.matches("[0-9a-f]{64}"));
        assertThat(table.rows()).hasSameSizeAs(json);
        for (int i = 0; i < json.size(); i++) {
            JsonNode object = json.get(i);
            assertThat(object.propertyNames().stream().map(Column::csvName)).containsExactlyElementsOf(table.columns());
            boolean timed = object.has("run"); // a real disk may lose a race with the next request
            for (String name : timed ? List.of("trace", "policy", "run") : SAME) {
                if (object.has(name)) {
                    assertThat(table.rows().get(i))
                            .containsEntry(
                                    Column.csvName(name), object.get(name).asString());
                }
            }
        }
    }

    @Test
    void givenATraceInAFile_whenReplayed_thenRowsAndHeadHaveItsDigestAndTheVersion() throws IOException {
        Path file = Files.writeString(folder.resolve("mine.jsonl"), "{\"tokens\": [1, 2, 3]}\n");
        String sha256 = TraceDigest.ofFile(file);
        for (String command : List.of(
                "replay --policy lru --blocks 9",
                "lab --policy lru --share 50",
                "lab curve --share 50",
                "sim --placement --nodes 2")) {
            assertThat(csv(command + " --trace " + file).column("trace_sha256")).containsOnly(sha256);
            assertThat(out(command + " --trace " + file).lines().findFirst().orElse(""))
                    .endsWith("(SHA-256 " + sha256.substring(0, 12) + ", kvcache " + Version.text() + ")");
        }
    }

    @Test
    void givenBothRules_whenReplayedToCsv_thenOneHeadAndARuleInEachRow() {
        CsvTable table = csv("replay --trace " + TRACE + " --policy lru,sieve --blocks 100 --rule both");
        assertThat(table.column("rule")).containsExactly("reference", "reference", "full-blocks", "full-blocks");
        for (var row : table.rows()) {
            double ratio = Double.parseDouble(row.getOrDefault("block_hits", ""))
                    / Double.parseDouble(row.getOrDefault("block_accesses", ""));
            assertThat(row).containsEntry("block_hit_ratio", Double.toString(ratio));
        }
    }

    @Test
    void givenADisk_whenReplayedToCsv_thenARowForEachRuleOfAdmission() {
        CsvTable table = csv("replay --trace " + TRACE + " --blocks 200 --bytes 4KiB --disk " + folder.resolve("disk")
                + ":2000blocks");
        assertThat(table.column("admission")).containsExactly("always", "second-hit");
        assertThat(table.column("wrong_blocks")).containsOnly("0");
    }

    @Test
    void givenATarget_whenSizedToCsv_thenTiersAddUpToTheirPolicyAndFleetsHaveTwoRows() {
        CsvTable table = csv("size --trace " + TRACE + " --target-hit 0.5 --host 1GiB --instances 2 --route session");
        assertThat(table.column("policy"))
                .containsExactly(
                        "lru",
                        "lru",
                        "lru",
                        "lru",
                        "importance",
                        "importance",
                        "importance",
                        "importance",
                        "lru",
                        "lru");
        assertThat(table.column("tier").subList(0, 4)).containsExactly("all", "device", "host", "disk");
        for (String sum : List.of("blocks", "bytes", "hit_ratio")) {
            List<Double> values = table.numbers(sum);
            assertThat(values.get(1) + values.get(2) + values.get(3)).isEqualTo(values.get(0));
        }
        assertThat(table.column("trace_sha256")).allMatch(digest -> digest.matches("[0-9a-f]{64}"));
        assertThat(table.column("instances").subList(8, 10)).containsExactly("2", "2");
        assertThat(table.column("route").subList(8, 10)).containsExactly("session", "session");
        assertThat(table.numbers("hit_ratio").get(9)).isEqualTo(0.5);
    }

    @Test
    void givenATarget_whenSized_thenTextAndJsonNameVersionAndTrace() {
        String command = "size --trace " + TRACE + " --target-hit 0.5";
        JsonNode json = JsonMapper.builder().build().readTree(out(command, "--json"));
        String sha256 = csv(command).column("trace_sha256").getFirst();
        assertThat(json.get("traceSha256").asString()).isEqualTo(sha256);
        assertThat(json.get("rows").get(0).get("tiers")).hasSize(3);
        assertThat(out(command)).contains("(SHA-256 " + sha256.substring(0, 12) + ", kvcache ");
    }

    @Test
    void givenATargetOutOfReach_whenSizedToCsv_thenARowWithoutACapacity() {
        CommandRunner.CommandResult result =
                CommandRunner.run("size", "--trace", TRACE, "--target-hit", "0.999", "--format", "csv");
        assertThat(result.exitCode()).isEqualTo(1);
        CsvTable table = CsvTable.parse(result.out());
        assertThat(table.column("blocks")).containsExactly("");
        assertThat(table.numbers("ceiling_hit_ratio").getFirst()).isBetween(0.5, 0.999);
    }

    @Test
    void givenACapture_whenReplayedToCsv_thenARowForEachPolicy() throws IOException {
        Path file = Files.writeString(folder.resolve("mine.jsonl"), CAPTURE);
        CsvTable table = csv("lab capture " + file);
        assertThat(table.columns()).startsWith("trace", "policy", "host_bytes", "uses");
        assertThat(table.column("trace")).containsExactly("mine", "mine");
        assertThat(table.column("policy")).containsExactly("lru", "importance");
        assertThat(table.column("trace_sha256")).containsOnly(TraceDigest.ofFile(file));
        assertThat(table.column("hit_ratio")).containsOnly("0.5");
        assertThat(table.column("server_hit_ratio")).containsOnly("0.5");
    }

    @Test
    void givenTheColumnsOfAllCommands_whenComparedWithThePage_thenItDescribesThemAndNoOther() throws IOException {
        Path capture = Files.writeString(folder.resolve("mine.jsonl"), CAPTURE);
        Set<String> columns = new TreeSet<>();
        for (String command : List.of(
                "replay --policy lru --blocks 100 --trace " + TRACE,
                "replay --blocks 500 --bytes 4KiB --trace " + TRACE,
                "replay --blocks 200 --bytes 4KiB --admission always --trace " + TRACE + " --disk "
                        + folder.resolve("disk") + ":2000blocks",
                "lab --policy lru --share 5 --trace " + TRACE,
                "lab tiers --trace generated:7 --first 400 --policy mooncake --host 20 --disk 60",
                "lab curve --share 5 --trace " + TRACE,
                "lab capture --policy lru " + capture,
                "size --target-hit 0.5 --trace " + TRACE,
                "lab states --model qwen3-next-80b-a3b --capacity 1GiB --states ends --trace " + TRACE,
                "sim --placement --nodes 2 --trace " + TRACE)) {
            columns.addAll(csv(command).columns());
        }
        Matcher section = Pattern.compile("## Rows for programs\n(.*?)\n## ", Pattern.DOTALL)
                .matcher(Files.readString(Path.of("../docs/planning.md")));
        assertThat(section.find()).isTrue();
        String named = section.group(1)
                .lines()
                .filter(line -> line.startsWith("| `") || line.startsWith("Every row ends with "))
                .map(line -> line.startsWith("|") ? line.split("\\|", -1)[1] : line)
                .collect(Collectors.joining("\n"));
        Set<String> described = Pattern.compile("`([a-z0-9_]+)`")
                .matcher(named)
                .results()
                .map(found -> found.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
        described.remove("sha256sum");
        assertThat(described).isEqualTo(columns);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "replay",
                "lab",
                "lab tiers",
                "lab curve",
                "lab capture x",
                "size --target-hit 0.3",
                "sim --placement"
            })
    void givenFormatsThatDoNotExistOrDoNotFit_whenAsked_thenRefused(String command) {
        String[] unknown = (command + " --format xml").split(" ");
        assertThat(CommandRunner.run(unknown).err()).contains("--format is 'xml', must be: text, json, csv");
        String[] both = (command + " --format csv --json").split(" ");
        CommandRunner.CommandResult refused = CommandRunner.run(both);
        assertThat(refused.err()).contains("--format is 'csv', must be: json, where --json is given");
        assertThat(refused.exitCode()).isEqualTo(2);
    }
}
