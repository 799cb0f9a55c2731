package io.kvcache.bench.lab;

import io.kvcache.bench.replay.Replay;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.trace.Trace;
import java.util.List;
import java.util.function.Consumer;

/// Replays one trace against caches at capacities that are shares of its distinct blocks.
public final class Laboratory {

    private final Trace trace;
    private final TraceForest forest;
    private final ReplayComparison comparison;

    /// @param rule which blocks count
    /// @param warmup leading requests that are replayed but not counted
    public Laboratory(Trace trace, ReplayRule rule, int warmup) {
        this.trace = trace;
        forest = new TraceForest(trace, rule);
        comparison = new ReplayComparison(forest, warmup);
    }

    /// Runs all caches at all capacities, one after another.
    ///
    /// @param shares of the distinct blocks, above 0 to 1
    /// @param each told of every outcome
    public void run(List<Replay> caches, List<Double> shares, Consumer<LabRow> each) {
        for (double share : shares) {
            for (Replay cache : caches) {
                each.accept(LabRow.of(
                        trace.name(), forest.rule().commandName(), share, comparison.run(cache, blocks(share))));
            }
        }
    }

    /// A share of the distinct blocks, at least one.
    public int blocks(double share) {
        return (int) Math.max(1, Math.round(share * forest.nodes()));
    }
}
