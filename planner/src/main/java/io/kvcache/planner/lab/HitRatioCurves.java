package io.kvcache.planner.lab;

import io.kvcache.planner.lab.LruCurve.StackDistances;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import java.util.Arrays;
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
    public List<ResultRow> exact(List<Double> shares) {
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
    public List<ResultRow> sampled(List<Double> shares, double rate, long seed) {
        SampledCurve curve = new SampledCurve(forest, warmup, rate, seed);
        return shares.stream()
                .map(share -> row(share, curve.estimateAt(blocks(share)), false, curve.sampledBlocks()))
                .toList();
    }

    /// `low` and `high` bound the ratio; `exact` says whether a replay gives the very same: nothing was
    /// sampled, and the longest prompt fits. `sampledBlocks` are the distinct blocks that were looked at.
    private ResultRow row(double share, SampledCurve.Estimate estimate, boolean exact, int sampledBlocks) {
        int blocks = blocks(share);
        return new ResultRow()
                .put("trace", trace.name())
                .put("rule", forest.rule().commandName())
                .put("policy", "lru")
                .put("share", share)
                .put("blocks", blocks)
                .put("bytes", blocks * trace.blockBytes(bytesPerToken))
                .put("blockHitRatio", estimate.hitRatio())
                .put("low", estimate.low())
                .put("high", estimate.high())
                .put("exact", exact)
                .put("sampledBlocks", sampledBlocks);
    }

    private int blocks(double share) {
        return (int) Math.max(1, Math.round(share * forest.nodeCount()));
    }

    /// LRU's hit ratio at every capacity, estimated from a sample of the blocks, with a bound of the error.
    ///
    /// A block is in the sample when a hash of it is below a threshold, with all its uses; distances among
    /// the sampled blocks, divided by the rate, estimate those among all. That is SHARDS with a fixed rate.
    /// Two things are added:
    ///
    /// - A block with more than a thousandth of all accesses (the start of everybody's system prompt) would
    ///   make the estimate jump by whether it is in the sample. Its uses are measured always, though it
    ///   counts among the others of a distance only when sampled. So only the light blocks' share is
    ///   estimated, as hits over accesses of those sampled.
    /// - [#estimateAt] says between which values the true ratio lies: three standard deviations of the
    ///   estimate, which follow from how much the sampled blocks differ, at capacities that are three standard
    ///   deviations off, since a distance is known only so well.
    ///
    /// Source: Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST 2015.
    public static final class SampledCurve {

        private static final double DEVIATIONS = 3;
        private static final double MIN_HEAVY_SHARE = 1e-3;
        private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

        private final double rate;
        private final long seed;
        private final int[] accessesOf;
        private final long accesses;
        private final long heavyThreshold;
        private int[] nodes = new int[1024];
        private int[] distances = new int[1024];
        private int uses;
        private int sampledBlocks;

        /// The estimate for one capacity. The bounds hold in all but a few of a thousand cases.
        public record Estimate(double hitRatio, double low, double high) {}

        /// @param warmup leading requests that do not count
        /// @param rate share of the blocks that are sampled, above 0 to 1
        /// @param seed which of them
        public SampledCurve(PrefixForest forest, int warmup, double rate, long seed) {
            if (!(rate > 0 && rate <= 1)) {
                throw new IllegalArgumentException("rate is " + rate + ", must be above 0 to 1");
            }
            this.rate = rate;
            this.seed = seed;
            accessesOf = accessesOf(forest, warmup);
            accesses = LruCurve.accesses(forest, warmup);
            heavyThreshold = (long) (MIN_HEAVY_SHARE * accesses);
            for (int node = 0; node < accessesOf.length; node++) {
                sampledBlocks += isSampled(node) ? 1 : 0;
            }
            new StackDistances(forest, this::isSampled)
                    .run(warmup, node -> isSampled(node) || isHeavy(node), this::reused);
        }

        private static int[] accessesOf(PrefixForest forest, int warmup) {
            int[] counts = new int[forest.nodeCount()];
            for (int request = warmup; request < forest.requestCount(); request++) {
                for (int i = 0; i < forest.lookupBlocks(request); i++) {
                    counts[forest.node(request, i)]++;
                }
            }
            return counts;
        }

        /// Blocks in the sample.
        public int sampledBlocks() {
            return sampledBlocks;
        }

        /// The hit ratio of an LRU cache of so many blocks.
        public Estimate estimateAt(int blocks) {
            double unsure = DEVIATIONS * Math.sqrt(blocks * (1 - rate) / rate);
            Point here = point(blocks);
            Point below = point(Math.max(0, blocks - unsure));
            Point above = point(blocks + unsure);
            return new Estimate(
                    here.ratio,
                    Math.max(0, below.ratio - DEVIATIONS * below.deviation),
                    Math.min(1, above.ratio + DEVIATIONS * above.deviation));
        }

        /// @param deviation of the ratio, as if the distances were exact
        private record Point(double ratio, double deviation) {}

        private Point point(double blocks) {
            if (accesses == 0) {
                return new Point(0, 0);
            }
            int[] hits = new int[accessesOf.length];
            for (int use = 0; use < uses; use++) {
                hits[nodes[use]] += distances[use] / rate < blocks ? 1 : 0;
            }
            RatioSum heavy = new RatioSum();
            RatioSum light = new RatioSum();
            for (int node = 0; node < hits.length; node++) {
                if (isHeavy(node)) {
                    heavy.add(hits[node], accessesOf[node]);
                } else if (isSampled(node)) {
                    light.add(hits[node], accessesOf[node]);
                }
            }
            double lightAccesses = accesses - heavy.accesses;
            double hitRatio = (heavy.hits + lightAccesses * light.ratio()) / accesses;
            return new Point(hitRatio, light.deviation(rate) * lightAccesses / accesses);
        }

        /// Hits and accesses of many blocks, and what the spread of their ratio takes.
        private static final class RatioSum {

            private double hits;
            private double accesses;
            private double hitsSquared;
            private double product;
            private double accessesSquared;

            void add(double blockHits, double blockAccesses) {
                hits += blockHits;
                accesses += blockAccesses;
                hitsSquared += blockHits * blockHits;
                product += blockHits * blockAccesses;
                accessesSquared += blockAccesses * blockAccesses;
            }

            double ratio() {
                return accesses == 0 ? 0 : hits / accesses;
            }

            /// Returns the deviation of the ratio if each block was sampled with this probability.
            double deviation(double rate) {
                double squares = hitsSquared - 2 * ratio() * product + ratio() * ratio() * accessesSquared;
                return accesses == 0 ? 1 : Math.sqrt((1 - rate) * Math.max(0, squares)) / accesses;
            }
        }

        private void reused(int node, int others) {
            if (uses == nodes.length) {
                nodes = Arrays.copyOf(nodes, 2 * uses);
                distances = Arrays.copyOf(distances, 2 * uses);
            }
            nodes[uses] = node;
            distances[uses++] = others;
        }

        private boolean isHeavy(int node) {
            return accessesOf[node] > heavyThreshold;
        }

        private boolean isSampled(int node) {
            long mixed = ((seed * HASH_MULTIPLIER) ^ node) * HASH_MULTIPLIER;
            mixed = (mixed ^ (mixed >>> 32)) * HASH_MULTIPLIER;
            return (mixed >>> 11) * 0x1p-53 < rate;
        }
    }
}
