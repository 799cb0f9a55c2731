package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.figure.Figure;
import java.io.IOException;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/// Runs scenarios, each beside an undisturbed run of the same round.
///
/// @param trial the trace and the cluster
/// @param rounds how often, each time with other places of blocks
/// @param progress is told of each run
public record ClusterComparison(ClusterTrial trial, int rounds, Consumer<String> progress) {

    /// Runs them. A scenario that fails is told, and has no results of that round.
    ///
    /// @throws IOException when none has results
    public List<Figure> run(List<TrialScenario> scenarios) throws IOException, InterruptedException {
        Map<TrialScenario, TrialResults> results = new EnumMap<>(TrialScenario.class);
        IOException first = null;
        for (int round = 0; round < rounds; round++) {
            Map<Boolean, Run> undisturbed = new HashMap<>();
            for (TrialScenario scenario : scenarios) {
                try {
                    run(scenario, round, undisturbed, results);
                } catch (IOException failed) {
                    progress.accept(scenario.commandName() + " failed: " + failed.getMessage());
                    first = first == null ? failed : first;
                }
            }
        }
        if (results.isEmpty() && first != null) {
            throw first;
        }
        return results.values().stream()
                .flatMap(each -> each.toFigures().stream())
                .toList();
    }

    private void run(
            TrialScenario scenario, int round, Map<Boolean, Run> undisturbed, Map<TrialScenario, TrialResults> results)
            throws IOException, InterruptedException {
        String which = "round " + (round + 1) + " of " + rounds + ", ";
        boolean disks = scenario.withDisks();
        Run without = undisturbed.get(disks);
        if (without == null) {
            progress.accept(which + "undisturbed" + (disks ? ", with disks" : ""));
            without = trial.run(null, round, disks);
            undisturbed.put(disks, without);
            describe(without);
        }
        progress.accept(which + scenario.title());
        Run with = trial.run(scenario, round, disks);
        describe(with);
        results.computeIfAbsent(scenario, TrialResults::new).add(with, without);
    }

    private void describe(Run run) {
        Progress sums = run.progress();
        progress.accept(String.format(
                Locale.ROOT,
                "  found %.2f %% of %.2f %% possible, %,d blocks not stored, errors %d, wrong %d%s",
                100 * sums.hitRatio(),
                100.0 * sums.possible() / sums.asked(),
                sums.unstored(),
                sums.errors(),
                sums.wrong(),
                run.firstError() == null ? "" : ", first error: " + run.firstError()));
        if (run.begin() > 0 && run.hasEndedBeforeScenario()) {
            progress.accept("  the trace ended before the scenario did: give it more --requests, or a lower --rate");
        }
    }
}
