package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.planner.PythonRunner;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The notebook of `planner/notebooks` over rows that were just printed.
@Tag("slow")
final class PlanningNotebookTest {

    private static final Path NOTEBOOK = Path.of("notebooks/planning.ipynb");
    private static final String TRACE = "agents:1:requests=300:context=20000";

    /// Prints each figure's title and each line's name and values, behind the cells.
    private static final String DRAWN = """

            for number in plt.get_fignums():
                figure = plt.figure(number)
                for axes in figure.axes:
                    for line in axes.get_lines():
                        values = ",".join(repr(float(value)) for value in line.get_ydata())
                        print("|".join((figure._suptitle.get_text(), axes.get_title(), line.get_label(), values)))
            """;

    @TempDir
    private Path folder = Path.of("");

    private static JsonNode notebook() throws IOException {
        return JsonMapper.builder().build().readTree(Files.readString(NOTEBOOK));
    }

    private static List<JsonNode> codeCells() throws IOException {
        return StreamSupport.stream(notebook().get("cells").spliterator(), false)
                .filter(cell -> cell.get("cell_type").asString().equals("code"))
                .toList();
    }

    private static boolean draws(JsonNode cell) {
        return cell.get("metadata").toString().contains("\"draws\"");
    }

    private static String source(List<JsonNode> cells) {
        return cells.stream()
                .map(cell -> StreamSupport.stream(cell.get("source").spliterator(), false)
                        .map(JsonNode::asString)
                        .collect(Collectors.joining()))
                .collect(Collectors.joining("\n\n", "", "\n"));
    }

    private Path rows(String name, String command) throws IOException {
        CommandRunner.CommandResult result = CommandRunner.run((command + " --format csv").split(" "));
        assertThat(result.exitCode()).as(result.err()).isZero();
        return Files.writeString(folder.resolve(name), result.out());
    }

    private static PythonRunner python(String modules, String packages) throws InterruptedException {
        Optional<PythonRunner> python = PythonRunner.withModules(modules);
        assumeTrue(
                python.isPresent(),
                "python3 with " + modules + " is not here; apt-get install " + packages
                        + ", or name an interpreter that has it by KVCACHE_TEST_PYTHON");
        return python.orElseThrow();
    }

    private String run(PythonRunner python, String script, Path... files) throws Exception {
        String names = Arrays.stream(files).map(Path::toString).collect(Collectors.joining(File.pathSeparator));
        return python.run(
                folder,
                script,
                Map.of("KVCACHE_CSV", names, "MPLBACKEND", "Agg", "HOME", folder.toString()),
                List.of());
    }

    /// Figure, run and line of what was drawn, and the values.
    private static Map<String, List<Double>> drawn(String printed) {
        return printed.lines()
                .filter(line -> line.chars().filter(c -> c == '|').count() == 3)
                .collect(Collectors.toMap(
                        line -> line.substring(0, line.lastIndexOf('|')),
                        line -> Arrays.stream(line.substring(line.lastIndexOf('|') + 1)
                                        .split(","))
                                .map(Double::valueOf)
                                .toList()));
    }

    private static List<Double> ofPolicy(CsvTable table, String policy, String column) {
        List<Double> values = new ArrayList<>();
        for (int i = 0; i < table.rows().size(); i++) {
            if (table.column("policy").get(i).equals(policy)) {
                values.add(table.numbers(column).get(i));
            }
        }
        return values;
    }

    @Test
    void givenTheNotebook_whenRead_thenItHasNoOutputs() throws IOException {
        assertThat(notebook().get("nbformat").asInt()).isEqualTo(4);
        assertThat(codeCells()).hasSizeGreaterThan(3).allSatisfy(cell -> {
            assertThat(cell.get("outputs")).isEmpty();
            assertThat(cell.get("execution_count").isNull()).isTrue();
        });
    }

    @Test
    void givenRowsOfLabAndReplay_whenTheTableIsMade_thenItHasTheirRatios() throws Exception {
        PythonRunner python = python("pandas", "python3-pandas");
        Path lab = rows("lab.csv", "lab --policy lru,sieve --share 5,20 --trace " + TRACE);
        Path replay = rows("replay.csv", "replay --policy lru,sieve --blocks 77 --rule full-blocks --trace " + TRACE);
        List<JsonNode> cells = codeCells().stream().filter(cell -> !draws(cell)).toList();
        String printed = run(python, source(cells), lab, replay);
        CsvTable table = CsvTable.parse(Files.readString(replay));
        assertThat(printed).contains(TRACE + ", reference", TRACE + ", full-blocks");
        assertThat(printed.lines().filter(line -> line.contains(" 77 ")))
                .singleElement()
                .asString()
                .endsWith(percent(table.numbers("block_hit_ratio").get(0)) + "  "
                        + percent(table.numbers("block_hit_ratio").get(1)));
    }

    private static String percent(double ratio) {
        return String.format(Locale.ROOT, "%.2f", 100 * ratio);
    }

    @Test
    void givenRowsOfLab_whenDrawn_thenTheLinesHaveTheirHitRatiosAndTimes() throws Exception {
        PythonRunner python = python("pandas, matplotlib", "python3-pandas python3-matplotlib");
        Path lab = rows("lab.csv", "lab --policy lru,sieve --share 5,20,50 --trace " + TRACE);
        CsvTable table = CsvTable.parse(Files.readString(lab));
        Map<String, List<Double>> lines = drawn(run(python, source(codeCells()) + DRAWN, lab));
        String run = "|" + TRACE + ", reference|";
        assertThat(lines)
                .hasSize(3 + 2 + 2)
                .containsEntry("Block hit ratio" + run + "sieve", ofPolicy(table, "sieve", "block_hit_ratio"))
                .containsEntry("Block hit ratio" + run + "bound", ofPolicy(table, "lru", "belady_bypass_hit_ratio"))
                .containsEntry(
                        "Time to the first token, median" + run + "lru", ofPolicy(table, "lru", "ttft_p50_seconds"))
                .containsEntry(
                        "Time to the first token, 99th percentile" + run + "sieve",
                        ofPolicy(table, "sieve", "ttft_p99_seconds"));
    }

    @Test
    void givenSeveralSeedsOfReplay_whenDrawn_thenTheLinesAreTheirMeans() throws Exception {
        PythonRunner python = python("pandas, matplotlib", "python3-pandas python3-matplotlib");
        Path replay = rows("replay.csv", "replay --policy lru --blocks 100,300 --seeds 3 --trace " + TRACE);
        CsvTable table = CsvTable.parse(Files.readString(replay));
        List<Double> means = new ArrayList<>();
        for (int i = 0; i < table.rows().size(); i++) {
            if (table.column("statistic").get(i).equals("mean")) {
                means.add(table.numbers("block_hit_ratio").get(i));
            }
        }
        assertThat(means).hasSize(2);
        Map<String, List<Double>> lines = drawn(run(python, source(codeCells()) + DRAWN, replay));
        assertThat(lines)
                .hasSize(2)
                .containsEntry(
                        "Block hit ratio|" + TRACE + " to " + TRACE.replace(":1:", ":3:") + ", reference|lru", means);
    }
}
