package io.kvcache.bench.suite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.cli.Kvcache;
import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import io.kvcache.bench.suite.BuildComparison.SpeedRatio;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BuildComparisonTest {

    private static final RunnableBuild OLD = new RunnableBuild("old", "old.jar", "Main");
    private static final RunnableBuild NEW = new RunnableBuild("new", "new.jar", "Main");

    @Test
    void givenSpeedsThatScatterAlike_whenCompared_thenNoCellIsSlower() throws Exception {
        BuildComparison.SuiteComparison suiteComparison =
                compare(new ScatteredBenchmark(Map.of("a", 1.0, "b", 1.0), 0.05));

        assertThat(suiteComparison.slowerCells()).isEmpty();
        assertThat(suiteComparison.meanRatio()).isCloseTo(1, within(0.03));
    }

    @Test
    void givenACellOfNineTenths_whenCompared_thenItIsMeasuredAgainAndIsSlower() throws Exception {
        ScatteredBenchmark trial = new ScatteredBenchmark(Map.of("a", 1.0, "b", 0.9), 0.02);
        BuildComparison.SuiteComparison suiteComparison = compare(trial);

        assertThat(suiteComparison.slowerCells()).containsExactly("b");
        assertThat(suiteComparison.isNotSlower()).isFalse();
        assertThat(trial.measured).containsEntry("a", 9).containsEntry("b", 18);
    }

    @Test
    void givenACellThatIsSlowerOnce_whenCompared_thenTheSecondRunAcquitsIt() throws Exception {
        ScatteredBenchmark trial = new ScatteredBenchmark(Map.of("a", 1.2, "b", 1.0), 0.01);
        trial.slowAtFirst = Set.of("b");
        BuildComparison.SuiteComparison suiteComparison = compare(trial);

        assertThat(suiteComparison.first().getLast().isSlower()).isTrue();
        assertThat(suiteComparison.slowerCells()).isEmpty();
        assertThat(suiteComparison.isNotSlower()).isTrue();
    }

    @Test
    void givenCellsThatAreAllALittleSlower_whenCompared_thenTheMeanTells() throws Exception {
        BuildComparison.SuiteComparison suiteComparison =
                compare(new ScatteredBenchmark(Map.of("a", 0.98, "b", 0.98), 0.001));

        assertThat(suiteComparison.slowerCells()).isEmpty();
        assertThat(suiteComparison.isNotSlower()).isFalse();
    }

    @Test
    void givenACellThatOneBuildLacks_whenCompared_thenItIsNamedAndCountsForNothing() throws Exception {
        ScatteredBenchmark trial = new ScatteredBenchmark(Map.of("a", 1.0), 0.001);
        BuildComparison.SuiteComparison suiteComparison =
                new BuildComparison(OLD, NEW, 9, _ -> {}).run(trial, Set.of("a", "new-cell"));

        assertThat(suiteComparison.missing()).containsExactly("new-cell");
        assertThat(suiteComparison.isNotSlower()).isTrue();
    }

    @Test
    void givenANameThatStandsForSeveralCells_whenCompared_thenEachIsRatedAndTheSlowOneAloneIsRepeated()
            throws Exception {
        ScatteredBenchmark trial = new ScatteredBenchmark(Map.of("tcp-get", 1.0, "tcp-put", 0.9), 0.001);
        BuildComparison.SuiteComparison suiteComparison =
                new BuildComparison(OLD, NEW, 9, _ -> {}).run(trial, Set.of("tcp-", "aeron-"));

        assertThat(suiteComparison.slowerCells()).containsExactly("tcp-put");
        assertThat(suiteComparison.missing()).containsExactly("aeron-");
        assertThat(trial.measured).containsEntry("tcp-get", 9).containsEntry("tcp-put", 18);
    }

    @Test
    void givenAPairThatFails_whenOthersWereMeasured_thenTheseAreRatedAndTheFailureIsSaid() throws Exception {
        ScatteredBenchmark trial = new ScatteredBenchmark(Map.of("a", 1.0), 0.001);
        trial.failsAt = 5;
        List<String> said = new ArrayList<>();
        BuildComparison.SuiteComparison suiteComparison =
                new BuildComparison(OLD, NEW, 9, said::add).run(trial, Set.of("a"));

        assertThat(suiteComparison.first().getFirst().pairs()).isEqualTo(4);
        assertThat(said).last().asString().contains("pair 5 of 9").contains("no such build");
    }

    @Test
    void givenOnePairThatWasDisturbed_whenRated_thenTheIntervalStaysWithTheOthers() {
        List<Double> ratios = new ArrayList<>(List.of(1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.2));

        SpeedRatio ratio = SpeedRatio.of("a", ratios);

        assertThat(ratio.median()).isEqualTo(1.0);
        assertThat(ratio.low()).isGreaterThan(0.97);
    }

    @Test
    void givenNoBuild_whenLookedFor_thenItSaysWhatAPlaceIs(@TempDir Path folder) {
        assertThatThrownBy(() -> RunnableBuild.locate(folder))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(folder.toString())
                .hasMessageContaining("./kvcache build");
    }

    @Test
    void givenACheckoutOrAJar_whenLookedFor_thenItsJarsAreTheClassPath(@TempDir Path folder) throws IOException {
        Path libraries = Files.createDirectories(folder.resolve("bench/target/lib"));
        Path jar = Files.createFile(folder.resolve("bench/target/kvcache-bench-1.jar"));
        Path library = Files.createFile(libraries.resolve("picocli.jar"));
        Path one = folder.resolve("kvcache.jar");
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, "a.Main");
        new JarOutputStream(Files.newOutputStream(one), manifest).close();

        assertThat(RunnableBuild.locate(folder).classPath())
                .isEqualTo(jar.toRealPath() + File.pathSeparator + library.toRealPath());
        assertThat(RunnableBuild.locate(folder).mainClass()).isEqualTo(Kvcache.class.getName());
        assertThat(RunnableBuild.locate(one)).isEqualTo(new RunnableBuild(one.toString(), one.toString(), "a.Main"));
    }

    private static BuildComparison.SuiteComparison compare(ScatteredBenchmark trial)
            throws IOException, InterruptedException {
        return new BuildComparison(OLD, NEW, 9, _ -> {}).run(trial, Set.copyOf(trial.cellNames()));
    }

    /// Cells with a true ratio each, around which a seeded generator scatters.
    private static final class ScatteredBenchmark implements BuildBenchmark {

        private final Map<String, Double> truth;
        private final double spread;
        private final Random random = new Random(7);
        private final Map<String, Integer> measured = new LinkedHashMap<>();
        private Set<String> slowAtFirst = Set.of();
        private int failsAt;

        ScatteredBenchmark(Map<String, Double> truth, double spread) {
            this.truth = truth;
            this.spread = spread;
        }

        @Override
        public String suiteName() {
            return "scattered";
        }

        @Override
        public List<String> cellNames() {
            return truth.keySet().stream().sorted().toList();
        }

        @Override
        public Map<String, Double> measurePair(
                RunnableBuild older,
                RunnableBuild newer,
                boolean newFirst,
                Set<String> cells,
                Consumer<String> progress)
                throws IOException {
            Map<String, Double> ratios = new LinkedHashMap<>();
            for (String cell : cellNames()) {
                if (cells.stream().anyMatch(cell::startsWith)) {
                    boolean slow = slowAtFirst.contains(cell) && measured.getOrDefault(cell, 0) < 9;
                    if (measured.merge(cell, 1, Integer::sum) == failsAt) {
                        throw new IOException("no such build");
                    }
                    double ratio = slow ? 0.9 : truth.getOrDefault(cell, 1.0);
                    ratios.put(cell, ratio * (1 + spread * (2 * random.nextDouble() - 1)));
                }
            }
            return ratios;
        }
    }
}
