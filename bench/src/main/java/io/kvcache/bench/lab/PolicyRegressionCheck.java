package io.kvcache.bench.lab;

import io.kvcache.bench.baseline.Baselines;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.replay.SimulatedCache;
import io.kvcache.bench.trace.Trace;
import io.kvcache.core.policy.PolicyKind;
import java.util.List;

/// Sets importance beside the better of LRU and LFU-DA over capacities: the promise is that it is
/// nowhere half a point below.
public final class PolicyRegressionCheck {

    /// The capacities that are promised, as shares of the distinct blocks.
    public static final List<Double> SHARES = List.of(0.005, 0.015, 0.03, 0.06, 0.11, 0.3);

    private final Trace trace;
    private final PrefixForest forest;
    private final ReplayComparison comparison;
    private final SimulatedCache importance;

    /// Every id of a request counts as a block.
    ///
    /// @param lookAhead requests that importance knows before they come, 0 for none
    public PolicyRegressionCheck(Trace trace, int lookAhead) {
        this.trace = trace;
        forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        comparison = new ReplayComparison(forest, 0);
        importance = new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead);
    }

    /// One capacity.
    ///
    /// @param share of the distinct blocks, above 0 to 1
    public MarginRow compareAt(double share) {
        int blocks = (int) Math.max(1, Math.round(share * forest.nodeCount()));
        ReplayComparison.Outcome own = comparison.run(importance, blocks);
        double lru = own.bounds().lru().blockHitRatio();
        double lfuDa = comparison
                .run(new PolicyReplay(Baselines.LFU_DA), blocks)
                .totals()
                .blockHitRatio();
        double found = own.totals().blockHitRatio();
        return new MarginRow(
                trace.name(),
                share,
                blocks,
                lru,
                lfuDa,
                found,
                own.bounds().beladyBypass().blockHitRatio(),
                own.shareOfGap().orElse(0),
                found - Math.max(lru, lfuDa),
                lru == 0 ? 0 : found / lru);
    }
}
