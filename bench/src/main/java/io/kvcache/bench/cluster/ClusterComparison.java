package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.cluster.ClusterReplay.Served;
import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.cluster.ClusterTrial.TrialScenario;
import io.kvcache.bench.figure.Figure;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.ToDoubleBiFunction;
import java.util.function.ToDoubleFunction;

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

    /// What a scenario cost: its runs, each beside an undisturbed one with the same places of blocks.
    private static final class TrialResults {

        private static final String UNDISTURBED = "undisturbed";

        /// A request that waits for so much longer than any of the undisturbed run is slow.
        private static final double SLOW_MILLIS = 200;

        private final TrialScenario scenario;
        private final List<Pair> pairs = new ArrayList<>();

        private record Pair(Run disturbed, Run undisturbed) {

            int begin() {
                return disturbed.begin();
            }

            int end() {
                return disturbed.served().found().length;
            }

            /// Seconds from the scenario's begin to the end of the last slow request.
            double slowSeconds() {
                double limit = undisturbed.served().maxWaitMillis(0, end()) + SLOW_MILLIS;
                Served served = disturbed.served();
                long last = disturbed.beginNanos();
                for (int i = begin(); i < end(); i++) {
                    if (served.waitNanos()[i] / 1e6 > limit) {
                        last = Math.max(last, served.startNanos()[i] + served.waitNanos()[i]);
                    }
                }
                return (last - disturbed.beginNanos()) / 1e9;
            }
        }

        TrialResults(TrialScenario scenario) {
            this.scenario = scenario;
        }

        /// Adds a run.
        void add(Run disturbed, Run undisturbed) {
            pairs.add(new Pair(disturbed, undisturbed));
        }

        /// Returns medians, and sums of what must not happen.
        List<Figure> toFigures() {
            List<Figure> all = new ArrayList<>();
            all.add(hits("hits-100", 100));
            all.add(hits("hits-500", 500));
            all.add(hits("hits-rest", Integer.MAX_VALUE / 2));
            all.add(sum("errors", "requests", run -> run.progress().errors()));
            all.add(sum("wrong", "blocks", run -> run.progress().wrong()));
            all.add(sum("flaps", "servers", Run::flaps));
            all.add(beside("wait-max", "ms", (pair, run) -> run.served().maxWaitMillis(pair.begin(), pair.end())));
            all.add(beside("wait-p99", "ms", (pair, run) -> run.served().waitMillis(pair.begin(), pair.end(), 0.99)));
            all.add(Figure.of(name("slow"), "s", pairs, Pair::slowSeconds));
            boolean stop = scenario == TrialScenario.STOP;
            all.add(Figure.of(name("view"), "s", pairs, pair -> {
                List<Double> seconds = pair.disturbed.viewSeconds();
                return stop ? seconds.getFirst() : Collections.max(seconds);
            }));
            if (stop) {
                all.add(Figure.of(
                        name("view-back"),
                        "s",
                        pairs,
                        pair -> pair.disturbed.viewSeconds().getLast()));
            }
            all.add(beside("handover", "blocks", (_, run) -> run.handoverBlocks()));
            return all;
        }

        private String name(String figure) {
            return scenario.commandName() + "-" + figure;
        }

        /// Blocks that the next requests find.
        private Figure hits(String name, int requests) {
            return beside(name, "blocks", (pair, run) -> run.served().foundIn(pair.begin(), pair.begin() + requests));
        }

        private Figure beside(String name, String unit, ToDoubleBiFunction<Pair, Run> value) {
            return Figure.of(
                    name(name),
                    unit,
                    pairs,
                    pair -> value.applyAsDouble(pair, pair.disturbed),
                    UNDISTURBED,
                    pair -> value.applyAsDouble(pair, pair.undisturbed));
        }

        private Figure sum(String name, String unit, ToDoubleFunction<Run> count) {
            double disturbed = pairs.stream()
                    .mapToDouble(pair -> count.applyAsDouble(pair.disturbed))
                    .sum();
            double undisturbed = pairs.stream()
                    .mapToDouble(pair -> count.applyAsDouble(pair.undisturbed))
                    .sum();
            return Figure.of(name(name), unit, new double[] {disturbed}, UNDISTURBED, new double[] {undisturbed});
        }
    }
}
