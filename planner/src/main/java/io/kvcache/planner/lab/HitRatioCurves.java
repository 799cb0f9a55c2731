package io.kvcache.planner.lab;

import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import java.util.List;

/// Draws LRU's hit ratio over capacity for one trace, exactly or from a sample.
public final class HitRatioCurves {

    private final Trace trace;
    private final PrefixForest forest;
    private final long bytesPerToken;
    private final int warmup;

    /// @param bytesPerToken of KV
    /// @param rule which blocks count
    /// @param warmup leading requests that do not count
    public HitRatioCurves(Trace trace, long bytesPerToken, BlockCountingRule rule, int warmup) {
        this.trace = trace;
        this.bytesPerToken = bytesPerToken;
        this.warmup = warmup;
        forest = new PrefixForest(trace, rule);
    }

    /// Points of the curve, from one pass.
    ///
    /// @param shares of the distinct blocks, above 0 to 1
    public List<CurveRow> exact(List<Double> shares) {
        LruCurve curve = new LruCurve(forest, warmup);
        return shares.stream()
                .map(share -> {
                    int blocks = blocks(share);
                    double ratio = curve.hitRatio(blocks);
                    boolean exact = blocks >= curve.minExactBlocks();
                    return row(share, new SampledCurve.Estimate(ratio, ratio, ratio), exact, forest.nodeCount());
                })
                .toList();
    }

    /// The same from a sample.
    ///
    /// @param rate share of the blocks that are sampled, above 0 to 1
    /// @param seed which
    public List<CurveRow> sampled(List<Double> shares, double rate, long seed) {
        SampledCurve curve = new SampledCurve(forest, warmup, rate, seed);
        return shares.stream()
                .map(share -> row(share, curve.estimateAt(blocks(share)), false, curve.sampledBlocks()))
                .toList();
    }

    private CurveRow row(double share, SampledCurve.Estimate estimate, boolean exact, int sampledBlocks) {
        int blocks = blocks(share);
        return new CurveRow(
                trace.name(),
                forest.rule().commandName(),
                "lru",
                share,
                blocks,
                blocks * trace.blockBytes(bytesPerToken),
                estimate.hitRatio(),
                estimate.low(),
                estimate.high(),
                exact,
                sampledBlocks);
    }

    private int blocks(double share) {
        return (int) Math.max(1, Math.round(share * forest.nodeCount()));
    }

    /// LRU's hit ratio at one capacity. The fields' names are what programs rely on.
    ///
    /// @param trace its name
    /// @param rule which blocks counted
    /// @param policy always lru
    /// @param share of the trace's distinct blocks that fit
    /// @param blocks capacity
    /// @param bytes of that many blocks of KV
    /// @param blockHitRatio hits over blocks looked up, in an LRU cache
    /// @param low the ratio is not below this
    /// @param high nor above this
    /// @param exact whether a replay gives the very same: nothing was sampled, and the longest prompt fits
    /// @param sampledBlocks distinct blocks that were looked at
    public record CurveRow(
            String trace,
            String rule,
            String policy,
            double share,
            int blocks,
            long bytes,
            double blockHitRatio,
            double low,
            double high,
            boolean exact,
            int sampledBlocks) {}
}
