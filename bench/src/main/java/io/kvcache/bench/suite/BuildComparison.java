package io.kvcache.bench.suite;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.planner.Median;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/// Compares two builds in pairs of runs, in which they take turns.
///
/// Cells that come out slower are measured a second time with as many pairs: a cell is slower when it was
/// so in both runs.
///
/// @param count pairs a cell and run
/// @param progress told what is about to run
public record BuildComparison(RunnableBuild older, RunnableBuild newer, int count, Consumer<String> progress) {

    /// The result of a suite.
    ///
    /// @param first every cell of the first run
    /// @param repeat the cells that were slower, measured again
    /// @param missing cells that the old build or the new one does not have
    public record SuiteComparison(String suite, List<SpeedRatio> first, List<SpeedRatio> repeat, Set<String> missing) {

        /// The cells that were slower twice.
        public List<String> slowerCells() {
            return repeat.stream()
                    .filter(SpeedRatio::isSlower)
                    .map(SpeedRatio::cell)
                    .toList();
        }

        /// The geometric mean of the first run.
        public double meanRatio() {
            return SpeedRatio.geometricMean(first);
        }

        /// Returns whether the new build is not slower: no cell was slower twice, and the mean is near enough to
        /// 1.
        public boolean isNotSlower() {
            return slowerCells().isEmpty() && meanRatio() >= SpeedRatio.MIN_MEAN;
        }
    }

    /// Runs a trial's cells.
    ///
    /// @throws IOException when a build cannot be run; a pair that fails after others ends the run with those
    public SuiteComparison run(BuildBenchmark trial, Set<String> cells) throws IOException, InterruptedException {
        List<SpeedRatio> first = measure(trial, cells);
        Set<String> missing = new LinkedHashSet<>(cells);
        missing.removeIf(name -> first.stream().anyMatch(ratio -> ratio.cell().startsWith(name)));
        Set<String> slower = first.stream()
                .filter(SpeedRatio::isSlower)
                .map(SpeedRatio::cell)
                .collect(Collectors.toCollection(LinkedHashSet::new));
        if (!slower.isEmpty()) {
            progress.accept("measuring again what was slower: " + String.join(", ", slower));
        }
        return new SuiteComparison(
                trial.suiteName(), first, slower.isEmpty() ? List.of() : measure(trial, slower), Set.copyOf(missing));
    }

    private List<SpeedRatio> measure(BuildBenchmark trial, Set<String> cells) throws IOException, InterruptedException {
        Map<String, List<Double>> ratios = new LinkedHashMap<>();
        for (int pair = 1; pair <= count; pair++) {
            String turn = trial.suiteName() + ", pair " + pair + " of " + count + ": ";
            try {
                trial.measurePair(older, newer, pair % 2 == 0, cells, cell -> progress.accept(turn + cell))
                        .forEach((cell, ratio) -> ratios.computeIfAbsent(cell, _ -> new ArrayList<>())
                                .add(ratio));
            } catch (IOException failed) {
                if (ratios.isEmpty()) {
                    throw failed;
                }
                progress.accept(turn + "ends the run, with the pairs before it: " + failed.getMessage());
                break;
            }
        }
        return ratios.entrySet().stream()
                .map(cell -> SpeedRatio.of(cell.getKey(), cell.getValue()))
                .toList();
    }

    /// How fast a new build is beside an old one in one cell: above 1 it is faster.
    ///
    /// The interval is the bootstrap's of the median: the pairs are drawn again with replacement, ten
    /// thousand times, from one seed. A pair that something else on the machine disturbed moves it
    /// little.
    ///
    /// @param pairs measured
    /// @param median of the pairs' ratios
    /// @param low lower end of the interval that holds the median with 90 %
    /// @param high upper end
    public record SpeedRatio(String cell, int pairs, double median, double low, double high) {

        /// A cell is slower when its whole interval lies under this.
        public static final double MIN_MEDIAN = 0.97;

        /// The geometric mean of a suite must not be under this.
        public static final double MIN_MEAN = 0.99;

        private static final int DRAWS = 10_000;
        private static final double TAIL = 0.05;

        /// Rates a cell.
        ///
        /// @param ratios one a pair, at least one
        public static SpeedRatio of(String cell, List<Double> ratios) {
            double[] measured = ratios.stream().mapToDouble(Double::doubleValue).toArray();
            double[] medians = new double[DRAWS];
            double[] drawn = new double[measured.length];
            Random random = new Random(1);
            for (int draw = 0; draw < DRAWS; draw++) {
                for (int i = 0; i < drawn.length; i++) {
                    drawn[i] = measured[random.nextInt(measured.length)];
                }
                medians[draw] = Median.of(drawn);
            }
            Arrays.sort(medians);
            return new SpeedRatio(
                    cell,
                    measured.length,
                    Median.of(measured),
                    medians[(int) (TAIL * DRAWS)],
                    medians[(int) ((1 - TAIL) * DRAWS) - 1]);
        }

        /// Returns whether even the upper end of the interval is under [#MIN_MEDIAN].
        public boolean isSlower() {
            return high < MIN_MEDIAN;
        }

        /// The geometric mean of cells' medians; 1 when there are none.
        public static double geometricMean(List<SpeedRatio> cells) {
            return Figure.geometricMean(cells, SpeedRatio::median);
        }
    }

    /// Measures that two builds can be compared by, the same for both and close in time.
    public interface BuildBenchmark {

        /// As on the command line.
        String suiteName();

        /// The names of all cells, in the order of measuring; one may stand for all cells whose names begin with
        /// it.
        List<String> cellNames();

        /// Measures some cells in both builds, each cell in one right after the other.
        ///
        /// @param newFirst the order within each cell; it changes from pair to pair
        /// @param progress told what is about to run
        /// @return speed of the new build by speed of the old one, by cell; without cells that a build
        ///     does not have
        /// @throws IOException when a build cannot be run
        Map<String, Double> measurePair(
                RunnableBuild older,
                RunnableBuild newer,
                boolean newFirst,
                Set<String> cells,
                Consumer<String> progress)
                throws IOException, InterruptedException;
    }
}
