package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Served;
import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.server.PairedSamples;
import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;

/// What a scenario cost: its runs, each beside an undisturbed one with the same places of blocks.
public final class TrialResults {

    private static final String UNDISTURBED = "undisturbed";
    private static final Threshold NONE = new Threshold.NoThreshold();
    private static final Threshold ZERO = new Threshold.AtMost(0);

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
    public List<BenchResult> toResults() {
        List<BenchResult> all = new ArrayList<>();
        boolean join = scenario == TrialScenario.JOIN;
        boolean kill = scenario == TrialScenario.KILL;
        Threshold hits = new Threshold.RatioAtLeast(scenario.hitRatio());
        all.add(hits("hits-100", "of the next 100 requests", 100, kill ? new Threshold.RatioAtLeast(0.45) : NONE));
        all.add(hits("hits-500", "of the next 500 requests", 500, join ? hits : NONE));
        all.add(hits("hits-rest", "of all requests after", Integer.MAX_VALUE / 2, hits));
        all.add(sum(
                "errors",
                "How many requests failed?",
                "requests",
                run -> run.progress().errors()));
        all.add(sum(
                "wrong",
                "How many blocks had wrong bytes?",
                "blocks",
                run -> run.progress().wrong()));
        all.add(sum("flaps", "How often was a live server taken for gone?", "servers", Run::flaps));
        PairedSamples longest = new PairedSamples();
        PairedSamples usual = new PairedSamples();
        PairedSamples slow = new PairedSamples();
        PairedSamples handover = new PairedSamples();
        for (Pair pair : pairs) {
            Served with = pair.disturbed.served();
            Served without = pair.undisturbed.served();
            longest.add(with.maxWaitMillis(pair.begin(), pair.end()), without.maxWaitMillis(pair.begin(), pair.end()));
            usual.add(
                    with.waitMillis(pair.begin(), pair.end(), 0.99),
                    without.waitMillis(pair.begin(), pair.end(), 0.99));
            slow.add(pair.slowSeconds(), 0);
            handover.add(pair.disturbed.handoverBlocks(), pair.undisturbed.handoverBlocks());
        }
        all.add(longest.toResult(metric("wait-max", "How long did a request wait at most?", "ms"), UNDISTURBED, NONE));
        all.add(usual.toResult(
                metric("wait-p99", "How long did 99 of 100 requests wait at most?", "ms"),
                UNDISTURBED,
                join ? new Threshold.RatioAtMost(2) : NONE));
        all.add(slow.toResult(
                metric("slow", "For how long did requests wait 200 ms longer than any before?", "s"),
                "-",
                kill ? new Threshold.AtMost(1) : NONE));
        all.addAll(views());
        all.add(handover.toResult(
                metric("handover", "How many blocks came from former owners?", "blocks"),
                UNDISTURBED,
                join ? new Threshold.AtLeast(1) : NONE));
        return all;
    }

    private List<BenchResult> views() {
        PairedSamples first = new PairedSamples();
        PairedSamples last = new PairedSamples();
        for (Pair pair : pairs) {
            List<Double> seconds = pair.disturbed.viewSeconds();
            boolean stop = scenario == TrialScenario.STOP;
            first.add(stop ? seconds.getFirst() : seconds.stream().reduce(0.0, Math::max), 0);
            last.add(seconds.getLast(), 0);
        }
        Threshold limit = switch (scenario) {
            case KILL -> new Threshold.AtMost(3);
            case STOP -> new Threshold.AtMost(5);
            case RESTART, ROLLING, DRAIN, JOIN -> NONE;
        };
        List<BenchResult> all = new ArrayList<>();
        all.add(first.toResult(metric("view", "How long until all servers agree?", "s"), "-", limit));
        if (scenario == TrialScenario.STOP) {
            all.add(last.toResult(
                    metric("view-back", "And after the server goes on?", "s"), "-", new Threshold.AtMost(15)));
        }
        return all;
    }

    private BenchResult hits(String name, String whose, int requests, Threshold limit) {
        PairedSamples hits = new PairedSamples();
        for (Pair pair : pairs) {
            int to = pair.begin() + requests;
            hits.add((double) pair.disturbed.served().foundIn(pair.begin(), to), (double)
                    pair.undisturbed.served().foundIn(pair.begin(), to));
        }
        return hits.toResult(metric(name, "How many blocks " + whose + " are found?", "blocks"), UNDISTURBED, limit);
    }

    private BenchResult sum(String name, String text, String unit, ToDoubleFunction<Run> count) {
        PairedSamples sum = new PairedSamples();
        sum.add(
                pairs.stream()
                        .mapToDouble(pair -> count.applyAsDouble(pair.disturbed))
                        .sum(),
                pairs.stream()
                        .mapToDouble(pair -> count.applyAsDouble(pair.undisturbed))
                        .sum());
        return sum.toResult(metric(name, text, unit), UNDISTURBED, ZERO);
    }

    private MetricSpec metric(String name, String text, String unit) {
        return new MetricSpec(scenario.commandName() + "-" + name, text, unit);
    }
}
