package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.planner.PythonRunner;
import io.kvcache.planner.log.LogImporter;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceRequest;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The program of docs/planning.md that counts as `replay` does.
@Tag("slow")
final class ReplayConventionTest {

    private static final Path PAGE = Path.of("../docs/planning.md");
    private static final int MAX_LINES = 25;

    @TempDir
    private Path folder = Path.of("");

    private static String program() throws IOException {
        Matcher block = Pattern.compile("### How replay counts\n.*?```python\n(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(PAGE));
        assertThat(block.find()).as("a program in the section").isTrue();
        return block.group(1);
    }

    /// Compares what the program prints with what `replay` prints.
    private void assertSame(Path trace, String rule, List<String> capacities) throws Exception {
        Optional<PythonRunner> python = PythonRunner.withModules("json");
        assumeTrue(python.isPresent(), "python3 is not here; apt-get install python3");
        List<String> arguments = new ArrayList<>(List.of(trace.toString(), rule));
        arguments.addAll(capacities);
        String printed = python.orElseThrow().run(folder, program(), Map.of(), arguments);
        CommandRunner.CommandResult replay = CommandRunner.run(
                "replay",
                "--trace",
                trace.toString(),
                "--policy",
                "lru",
                "--rule",
                rule,
                "--blocks",
                String.join(",", capacities),
                "--format",
                "csv");
        assertThat(replay.exitCode()).as(replay.err()).isZero();
        CsvTable table = CsvTable.parse(replay.out());
        List<String> lines = printed.lines().toList();
        assertThat(lines.stream().map(line -> line.split(" ", -1)[0])).containsExactlyElementsOf(capacities);
        assertThat(lines.stream().map(line -> Double.valueOf(line.split(" ", -1)[1])))
                .containsExactlyElementsOf(table.numbers("block_hit_ratio"))
                .allMatch(ratio -> ratio > 0 && ratio < 1);
    }

    private Path written(Trace trace) throws IOException {
        Path file = folder.resolve("trace.jsonl");
        LogImporter.writeTrace(trace, file);
        return file;
    }

    @Test
    void givenTheProgram_whenCounted_thenItIsShort() throws IOException {
        assertThat(program().lines().count()).isLessThanOrEqualTo(MAX_LINES);
    }

    @ParameterizedTest
    @CsvSource({
        "generated:5, reference",
        "generated:5, full-blocks",
        "agents:2:requests=300, reference",
        "agents:2:requests=300, full-blocks"
    })
    void givenAGeneratedTrace_whenTheProgramCountsIt_thenTheRatiosOfReplayToAllDigits(String name, String rule)
            throws Exception {
        Trace trace = TraceSource.parse(name).load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}));
        assertSame(written(trace), rule, List.of("10", "100", "333", "1000", "100000"));
    }

    /// Prompts that are longer than the cache, share ids after different beginnings and come at equal times.
    @ParameterizedTest
    @ValueSource(strings = {"reference", "full-blocks"})
    void givenRandomPromptsOfFewIds_whenTheProgramCountsThem_thenTheRatiosOfReplayToAllDigits(String rule)
            throws Exception {
        SplittableRandom random = new SplittableRandom(11);
        List<TraceRequest> requests = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            int tokens = 1 + random.nextInt(6 * Trace.BLOCK_TOKENS);
            long[] ids =
                    random.longs(Math.ceilDiv(tokens, Trace.BLOCK_TOKENS), 0, 4).toArray();
            requests.add(new TraceRequest(random.nextInt(500), tokens, 1, ids));
        }
        assertSame(written(new Trace("random", requests)), rule, List.of("1", "2", "3", "5", "8", "50", "400"));
    }

    @ParameterizedTest
    @CsvSource({"conversation, .0445, .1118, .3664", "synthetic, .0841, .2793, .6396"})
    void givenAPublishedTrace_whenTheProgramCountsIt_thenThePublishedRatios(
            String name, double atThousand, double atFiveThousand, double ideal) throws Exception {
        Optional<Path> file = new TraceFinder().find(name);
        assumeTrue(file.isPresent(), "trace " + name + " is not here; set KVCACHE_TRACES");
        Optional<PythonRunner> python = PythonRunner.withModules("json");
        assumeTrue(python.isPresent(), "python3 is not here; apt-get install python3");
        String trace = file.orElseThrow().toString();
        List<String> capacities = List.of("1000", "5000", "200000");
        String printed = python.orElseThrow()
                .run(
                        folder,
                        program(),
                        Map.of(),
                        Stream.concat(Stream.of(trace, "reference"), capacities.stream())
                                .toList());
        assertThat(printed.lines().map(line -> Math.round(1e4 * Double.parseDouble(line.split(" ", -1)[1])) / 1e4))
                .containsExactly(atThousand, atFiveThousand, ideal);
        assertSame(file.orElseThrow(), "reference", capacities);
        assertSame(file.orElseThrow(), "full-blocks", capacities);
    }
}
