package io.kvcache.bench.suite;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/// Compares two builds in pairs of runs, in which they take turns.
///
/// Cells that come out slower are measured a second time with as many pairs: a cell is slower when it was so in both
/// runs.
///
/// @param count pairs a cell and run
/// @param progress told what is about to run
public record BuildComparison(Build older, Build newer, int count, Consumer<String> progress) {

    /// What a suite came to.
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

        /// Whether the new build is not slower: no cell was slower twice, and the mean is near enough to 1.
        public boolean isNotSlower() {
            return slowerCells().isEmpty() && meanRatio() >= SpeedRatio.MIN_MEAN;
        }
    }

    /// Runs a trial's cells.
    ///
    /// @throws IOException when a build cannot be run
    public SuiteComparison run(BuildBenchmark trial, Set<String> cells) throws IOException, InterruptedException {
        List<SpeedRatio> first = measure(trial, cells);
        Set<String> missing = new LinkedHashSet<>(cells);
        first.forEach(ratio -> missing.remove(ratio.cell()));
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
            trial.measurePair(older, newer, pair % 2 == 0, cells, cell -> progress.accept(turn + cell))
                    .forEach((cell, ratio) ->
                            ratios.computeIfAbsent(cell, _ -> new ArrayList<>()).add(ratio));
        }
        return trial.cellNames().stream()
                .filter(ratios::containsKey)
                .map(cell -> SpeedRatio.of(cell, ratios.getOrDefault(cell, List.of())))
                .toList();
    }
}
