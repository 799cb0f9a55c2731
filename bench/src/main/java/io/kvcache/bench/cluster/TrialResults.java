package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Served;
import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.figure.Figure;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.ToDoubleBiFunction;
import java.util.function.ToDoubleFunction;

/// What a scenario cost: its runs, each beside an undisturbed one with the same places of blocks.
public final class TrialResults {

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

    public TrialResults(TrialScenario scenario) {
        this.scenario = scenario;
    }

    /// Adds a run.
    void add(Run disturbed, Run undisturbed) {
        pairs.add(new Pair(disturbed, undisturbed));
    }

    /// Returns medians, and sums of what must not happen.
    public List<Figure> toFigures() {
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
