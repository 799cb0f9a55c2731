package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import java.io.IOException;
import java.util.ArrayList;
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

    /// Runs them.
    public List<BenchResult> run(List<TrialScenario> scenarios) throws IOException, InterruptedException {
        Map<TrialScenario, TrialResults> results = new EnumMap<>(TrialScenario.class);
        scenarios.forEach(scenario -> results.put(scenario, new TrialResults(scenario)));
        for (int round = 0; round < rounds; round++) {
            Map<Boolean, Run> undisturbed = new HashMap<>();
            for (TrialScenario scenario : scenarios) {
                boolean disks = scenario.withDisks();
                Run without = undisturbed.get(disks);
                if (without == null) {
                    progress.accept(
                            "round " + (round + 1) + " of " + rounds + ", undisturbed" + (disks ? ", with disks" : ""));
                    without = trial.run(null, round, disks);
                    undisturbed.put(disks, without);
                    describe(without);
                }
                progress.accept("round " + (round + 1) + " of " + rounds + ", " + scenario.title());
                Run with = trial.run(scenario, round, disks);
                describe(with);
                results.get(scenario).add(with, without);
            }
        }
        List<BenchResult> all = new ArrayList<>();
        results.values().forEach(each -> all.addAll(each.toResults()));
        return all;
    }

    private void describe(Run run) {
        progress.accept(String.format(
                Locale.ROOT,
                "  hit ratio %.4f of %.4f possible, %,d blocks not stored, errors %d, wrong %d%s",
                run.progress().hitRatio(),
                (double) run.progress().possible() / run.progress().asked(),
                run.progress().unstored(),
                run.progress().errors(),
                run.progress().wrong(),
                run.firstError() == null ? "" : ", first error: " + run.firstError()));
        int last = run.lastDuring();
        if (run.begin() > 0 && last == run.served().found().length - 1) {
            progress.accept("  the trace ended before the scenario did: give it more --requests, or a lower --rate");
        }
    }
}
