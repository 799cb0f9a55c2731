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
public record BuildPairs(Build older, Build newer, int count, Consumer<String> progress) {

    /// What a suite came to.
    ///
    /// @param first every cell of the first run
    /// @param again the cells that were slower, measured again
    /// @param missing cells that the old build or the new one does not have
    public record Outcome(String suite, List<SpeedRatio> first, List<SpeedRatio> again, Set<String> missing) {

        /// The cells that were slower twice.
        public List<String> slower() {
            return again.stream()
                    .filter(SpeedRatio::isSlower)
                    .map(SpeedRatio::cell)
                    .toList();
        }

        /// The geometric mean of the first run.
        public double mean() {
            return SpeedRatio.mean(first);
        }

        /// Whether the new build is not slower: no cell was slower twice, and the mean is near enough to 1.
        public boolean ok() {
            return slower().isEmpty() && mean() >= SpeedRatio.LEAST_MEAN;
        }
    }

    /// Runs a trial's cells.
    ///
    /// @throws IOException when a build cannot be run
    public Outcome run(BuildTrial trial, Set<String> cells) throws IOException, InterruptedException {
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
        return new Outcome(
                trial.suite(), first, slower.isEmpty() ? List.of() : measure(trial, slower), Set.copyOf(missing));
    }

    private List<SpeedRatio> measure(BuildTrial trial, Set<String> cells) throws IOException, InterruptedException {
        Map<String, List<Double>> ratios = new LinkedHashMap<>();
        for (int pair = 1; pair <= count; pair++) {
            String turn = trial.suite() + ", pair " + pair + " of " + count + ": ";
            trial.pair(older, newer, pair % 2 == 0, cells, cell -> progress.accept(turn + cell))
                    .forEach((cell, ratio) ->
                            ratios.computeIfAbsent(cell, _ -> new ArrayList<>()).add(ratio));
        }
        return trial.cells().stream()
                .filter(ratios::containsKey)
                .map(cell -> SpeedRatio.of(cell, ratios.getOrDefault(cell, List.of())))
                .toList();
    }
}
