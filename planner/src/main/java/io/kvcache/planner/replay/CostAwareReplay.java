package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;

/// Replays against LMCache's cost-aware policy.
///
/// Victim is the block of the lowest `cost / bytes / (1 + age / 60 s)`, the longest unused among equals.
/// The cost is the number of tokens from the block's first to the end of the request that stored it,
/// which is what would have to be computed without it. The policy averages over all times that a block
/// was stored (the latest counts a fifth) and forgets a block that is evicted; one that is there is not
/// stored again, so the average is of one.
///
/// It knows nothing of trees: it may keep a block without those before it, which then is not found. Its
/// blocks are the trace's here, 256 tokens by default there. In a trace without time stamps nothing ages.
///
/// Source: LMCache, pull request 4459, `cache_policy/cost_aware_policy.py` on its branch, August 2026.
public record CostAwareReplay() implements SimulatedCache {

    private static final double HALF_LIFE_MILLIS = 60_000;

    @Override
    public String commandName() {
        return "lmcache-cost";
    }

    @Override
    public String title() {
        return "LMCache's cost-aware policy (not leaf-closed)";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        return new ScoredReplay(forest, new CostAware(forest), blocks, counter).replay();
    }

    private static final class CostAware implements ScoredReplay.ScoringPolicy {

        private final PrefixForest forest;
        private final long[] lastAccessMillis;
        private final int[] recomputeTokens;

        CostAware(PrefixForest forest) {
            this.forest = forest;
            lastAccessMillis = new long[forest.nodeCount()];
            recomputeTokens = new int[forest.nodeCount()];
        }

        @Override
        public boolean leavesOnly() {
            return false;
        }

        @Override
        public void onFound(int request, int block) {
            lastAccessMillis[forest.node(request, block)] = forest.arrivalMillis(request);
        }

        @Override
        public void onPut(int request, int block) {
            int node = forest.node(request, block);
            lastAccessMillis[node] = forest.arrivalMillis(request);
            recomputeTokens[node] = Math.max(1, forest.inputTokens(request) - block * forest.blockTokens());
        }

        @Override
        public double score(int node, int request) {
            double age = Math.max(0, forest.arrivalMillis(request) - lastAccessMillis[node]);
            return recomputeTokens[node] / (1 + age / HALF_LIFE_MILLIS);
        }
    }
}
