package io.kvcache.bench.constant;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.bench.constant.TunableConstant.Effect;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The constants that were chosen, beside the sources that have them.
final class TunableConstantsTest {

    private static final Path SOURCES = Path.of("..", "kvcache-core", "src", "main", "java");
    private static final int FIRST = 400;
    private static final List<String> MODULES =
            List.of("kvcache-core", "tiers", "gpu-bridge", "transport", "server", "bench");
    private static final Path PAGE = Path.of("CONSTANTS.md");

    @BeforeEach
    void findSources() {
        assumeTrue(Files.isDirectory(SOURCES), "the core's sources");
    }

    static List<TunableConstant> all() {
        return TunableConstants.all();
    }

    @ParameterizedTest
    @MethodSource("all")
    void givenAConstant_whenChanged_thenNothingElseOfItsSourceIs(TunableConstant constant) throws IOException {
        String source = PatchedCoreLoader.readSource(SOURCES, constant);
        String value = constant.valueIn(source);
        String changed = constant.withFactor(source, 0.5);
        assertThat(changed).contains("((" + value + ") * 0.5)");
        assertThat(changed.replaceFirst("\\((int|long|float|double)\\) \\(\\(([^;,]+)\\) \\* 0\\.5\\)", "$2"))
                .isEqualTo(source);
    }

    @ParameterizedTest
    @MethodSource("all")
    void givenAConstant_whenLookedUpInThePage_thenItsValueAndReasonAreThere(TunableConstant constant)
            throws IOException {
        String value = constant.valueIn(PatchedCoreLoader.readSource(SOURCES, constant));
        assertThat(Files.readString(PAGE)
                        .contains("| `" + constant.label() + "` | " + value + " | " + constant.chosen() + " |"))
                .as(
                        "CONSTANTS.md has a row of %s, %s: measure it again by lab constants --constant %s",
                        constant.label(), value, constant.label())
                .isTrue();
    }

    /// What javac copied elsewhere stays as it was when the core is compiled anew.
    @Test
    void givenTheSourcesOfAllModules_whenSearched_thenNoneThatIsNotCompiledAnewNamesAConstant() throws IOException {
        List<String> labels = new ArrayList<>();
        for (TunableConstant constant : TunableConstants.all()) {
            if (PatchedCoreLoader.readSource(SOURCES, constant)
                    .matches("(?s).*public static final \\w+ " + constant.name() + "\\b.*")) {
                labels.add(constant.label());
            }
        }
        assertThat(labels).contains("AdmissionKind.DEFAULT_GAIN");
        List<String> found = new ArrayList<>();
        for (String module : MODULES) {
            Path sources = Path.of("..", module, "src", "main", "java");
            try (Stream<Path> files = Files.walk(sources)) {
                for (Path file : files.filter(TunableConstantsTest::isKept).toList()) {
                    Files.readString(file)
                            .lines()
                            .filter(line -> !line.strip().startsWith("//"))
                            .filter(line -> labels.stream().anyMatch(line::contains))
                            .forEach(line -> found.add(file.getFileName() + ": " + line.strip()));
                }
            }
        }
        assertThat(found).isEmpty();
    }

    private static boolean isKept(Path file) {
        boolean anew = PatchedCoreLoader.PACKAGES.stream()
                .anyMatch(name ->
                        file.startsWith(SOURCES.resolve(PatchedCoreLoader.CORE).resolve(name)));
        return !anew && file.toString().endsWith(".java");
    }

    @Test
    void givenWhatMatters_whenHalvedAndDoubled_thenTheResultsAreOthersAndTheUsualOnesStay() throws IOException {
        TunableConstant rate = named("ImportanceConfig.priorEvents");
        List<ConstantSweepRow> rows = new ConstantSweep("generated:1", FIRST, SOURCES).rows(rate);
        assertThat(rows).extracting(ConstantSweepRow::factor).containsExactly(0.5, 2.0);
        assertThat(rows).anyMatch(row -> row.worstPoints() != 0 || row.bestPoints() != 0);
        for (ConstantSweepRow row : rows) {
            assertThat(row.worstPoints()).isLessThanOrEqualTo(row.meanPoints());
            assertThat(row.bestPoints()).isGreaterThanOrEqualTo(row.meanPoints());
        }
        double[] shares = {0.03};
        double[] usual = ConstantExperiment.hits("generated:1", FIRST, 0, shares);
        try (PatchedCoreLoader core = PatchedCoreLoader.compileWith(SOURCES, rate, 1)) {
            assertThat((double[]) core.callStatic(
                            ConstantExperiment.class,
                            "hits",
                            List.of(String.class, int.class, int.class, double[].class),
                            "generated:1",
                            FIRST,
                            0,
                            shares))
                    .isEqualTo(usual);
        }
    }

    @Test
    void givenAFolderWithoutSources_whenChanged_thenTheErrorNamesFileAndOption(@TempDir Path empty) {
        TunableConstant constant = TunableConstants.all().getFirst();
        assertThatThrownBy(() -> new ConstantSweep("generated:1", 10, empty).rows(constant))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("ImportanceConfig.java")
                .hasMessageContaining("--sources");
    }

    @Test
    void givenSourcesOfAnotherVersion_whenChanged_thenTheErrorNamesConstantAndOption(@TempDir Path other)
            throws IOException {
        TunableConstant constant = named("LruFallback.CHANCE");
        Path policy =
                Files.createDirectories(other.resolve(PatchedCoreLoader.CORE).resolve("policy"));
        Files.writeString(policy.resolve("LruFallback.java"), "class LruFallback {}");
        assertThatThrownBy(() -> new ConstantSweep("generated:1", 10, other).rows(constant))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("no constant CHANCE in policy/LruFallback.java")
                .hasMessageContaining("--sources");
    }

    @Test
    void givenASourceWithoutTheConstant_whenAsked_thenTheErrorNamesBoth() {
        TunableConstant constant =
                TunableConstant.field("policy/LruFallback", "NOWHERE", Effect.ORDER, "for this test");
        assertThatThrownBy(() -> constant.valueIn("class LruFallback {}"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("there is no constant NOWHERE in policy/LruFallback.java");
    }

    private static TunableConstant named(String label) {
        return TunableConstants.all().stream()
                .filter(each -> each.label().equals(label))
                .findFirst()
                .orElseThrow();
    }
}
