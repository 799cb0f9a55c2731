package io.kvcache.planner.replay;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.planner.replay.HitCounter.HitTotals;

/// Replays against RAGCache's prefix-aware greedy dual size frequency (PGDSF).
///
/// `priority = clock + frequency × cost`, set when a block is used; the victim is the leaf of the lowest
/// priority, and the clock becomes that when it is higher. The cost is the mean, over the requests that
/// had to compute the block, of the time of their whole prefill by the tokens that they had to compute:
/// `T(cached, new) / new`.
///
/// There the time is interpolated from a profile; here it is what [PrefillCost] says of Llama-3-8B, whose
/// unit does not matter. There a node is a document, here a block. Frequency and cost outlive an
/// eviction, since there the tree of knowledge does. One tier.
///
/// Source: Jin et al.: "RAGCache: efficient knowledge caching for retrieval-augmented generation", 2024,
/// by notes on it, as the paper itself was not at hand.
public record PgdsfReplay() implements SimulatedCache {

    private static final PrefillCost COST = PrefillCost.of(ModelPreset.LLAMA_3_8B, 1e15);

    @Override
    public String commandName() {
        return "pgdsf";
    }

    @Override
    public String title() {
        return "PGDSF of RAGCache";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        return new ScoredReplay(forest, new Pgdsf(forest), blocks, counter).replay();
    }

    private static final class Pgdsf implements ScoredReplay.ScoringPolicy {

        private final PrefixForest forest;
        private final double[] priority;
        private final int[] frequency;
        private final double[] totalCost;
        private final int[] computed;
        private double clock;
        /// Blocks that the request has found so far, which are all that it finds once the first is put.
        private int foundBy = -1;

        private int found;

        Pgdsf(PrefixForest forest) {
            this.forest = forest;
            priority = new double[forest.nodeCount()];
            frequency = new int[forest.nodeCount()];
            totalCost = new double[forest.nodeCount()];
            computed = new int[forest.nodeCount()];
        }

        @Override
        public boolean leavesOnly() {
            return true;
        }

        @Override
        public void onFound(int request, int block) {
            found = foundBy == request ? found + 1 : 1;
            foundBy = request;
            use(forest.node(request, block));
        }

        @Override
        public void onPut(int request, int block) {
            int node = forest.node(request, block);
            int tokens = forest.inputTokens(request);
            int cached = Math.min(tokens - 1, foundBy == request ? found * forest.blockTokens() : 0);
            totalCost[node] += COST.seconds(cached, tokens) / (tokens - cached);
            computed[node]++;
            use(node);
        }

        private void use(int node) {
            frequency[node]++;
            priority[node] = clock + frequency[node] * totalCost[node] / computed[node];
        }

        @Override
        public double score(int node, int request) {
            return priority[node];
        }

        @Override
        public void onEvicted(int node, double score) {
            clock = Math.max(clock, score);
        }
    }
}
