package io.kvcache.bench.suite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.cli.Kvcache;
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

class BuildPairsTest {

    private static final Build OLD = new Build("old", "old.jar", "Main");
    private static final Build NEW = new Build("new", "new.jar", "Main");

    @Test
    void givenSpeedsThatScatterAlike_whenCompared_thenNoCellIsSlower() throws Exception {
        BuildPairs.Outcome outcome = compare(new Scattered(Map.of("a", 1.0, "b", 1.0), 0.05));

        assertThat(outcome.slower()).isEmpty();
        assertThat(outcome.mean()).isCloseTo(1, within(0.03));
    }

    @Test
    void givenACellOfNineTenths_whenCompared_thenItIsMeasuredAgainAndIsSlower() throws Exception {
        Scattered trial = new Scattered(Map.of("a", 1.0, "b", 0.9), 0.02);
        BuildPairs.Outcome outcome = compare(trial);

        assertThat(outcome.slower()).containsExactly("b");
        assertThat(outcome.ok()).isFalse();
        assertThat(trial.measured).containsEntry("a", 9).containsEntry("b", 18);
    }

    @Test
    void givenACellThatIsSlowerOnce_whenCompared_thenTheSecondRunAcquitsIt() throws Exception {
        Scattered trial = new Scattered(Map.of("a", 1.2, "b", 1.0), 0.01);
        trial.slowAtFirst = Set.of("b");
        BuildPairs.Outcome outcome = compare(trial);

        assertThat(outcome.first().getLast().isSlower()).isTrue();
        assertThat(outcome.slower()).isEmpty();
        assertThat(outcome.ok()).isTrue();
    }

    @Test
    void givenCellsThatAreAllALittleSlower_whenCompared_thenTheMeanTells() throws Exception {
        BuildPairs.Outcome outcome = compare(new Scattered(Map.of("a", 0.98, "b", 0.98), 0.001));

        assertThat(outcome.slower()).isEmpty();
        assertThat(outcome.ok()).isFalse();
    }

    @Test
    void givenACellThatOneBuildLacks_whenCompared_thenItIsNamedAndCountsForNothing() throws Exception {
        Scattered trial = new Scattered(Map.of("a", 1.0), 0.001);
        BuildPairs.Outcome outcome = new BuildPairs(OLD, NEW, 9, _ -> {}).run(trial, Set.of("a", "new-cell"));

        assertThat(outcome.missing()).containsExactly("new-cell");
        assertThat(outcome.ok()).isTrue();
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
        assertThatThrownBy(() -> Build.at(folder))
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

        assertThat(Build.at(folder).classPath())
                .isEqualTo(jar.toRealPath() + File.pathSeparator + library.toRealPath());
        assertThat(Build.at(folder).mainClass()).isEqualTo(Kvcache.class.getName());
        assertThat(Build.at(one)).isEqualTo(new Build(one.toString(), one.toString(), "a.Main"));
    }

    private static BuildPairs.Outcome compare(Scattered trial) throws IOException, InterruptedException {
        return new BuildPairs(OLD, NEW, 9, _ -> {}).run(trial, Set.copyOf(trial.cells()));
    }

    /// Cells with a true ratio each, around which a seeded generator scatters.
    private static final class Scattered implements BuildTrial {

        private final Map<String, Double> truth;
        private final double spread;
        private final Random random = new Random(7);
        private final Map<String, Integer> measured = new LinkedHashMap<>();
        private Set<String> slowAtFirst = Set.of();

        Scattered(Map<String, Double> truth, double spread) {
            this.truth = truth;
            this.spread = spread;
        }

        @Override
        public String suite() {
            return "scattered";
        }

        @Override
        public List<String> cells() {
            return truth.keySet().stream().sorted().toList();
        }

        @Override
        public Map<String, Double> pair(
                Build older, Build newer, boolean newFirst, Set<String> cells, Consumer<String> progress) {
            Map<String, Double> ratios = new LinkedHashMap<>();
            for (String cell : cells()) {
                if (cells.contains(cell)) {
                    boolean slow = slowAtFirst.contains(cell) && measured.getOrDefault(cell, 0) < 9;
                    measured.merge(cell, 1, Integer::sum);
                    double ratio = slow ? 0.9 : truth.getOrDefault(cell, 1.0);
                    ratios.put(cell, ratio * (1 + spread * (2 * random.nextDouble() - 1)));
                }
            }
            return ratios;
        }
    }
}
