package io.kvcache.planner.replay;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.planner.replay.HitCounter.HitTotals;

/// Replays against Pensieve's retention value.
///
/// Victim is the block of the lowest `cost / idle time`, where the cost is the time to compute the block
/// again behind all tokens before it. Of one conversation that is the first block, since attention makes
/// the later ones dearer: its engine computes missing blocks in the middle of a prompt. So a block counts
/// as found here though one before it is missing, which no other cache of the laboratory may do; by the
/// count of an engine that cannot, this policy would find next to nothing.
///
/// There a chunk has 32 tokens and belongs to one conversation, here it is a block of the trace, and what
/// several requests share is idle since the last of them. Its cost is a profile, here [PrefillCost] of
/// Llama-3-8B. One tier.
///
/// Source: Yu, Lin, Li: "Stateful large language model serving with Pensieve", EuroSys 2025, by
/// notes on it, as the paper itself was not at hand.
public record PensieveReplay() implements SimulatedCache {

    private static final PrefillCost COST = PrefillCost.of(ModelPreset.LLAMA_3_8B, 1e15);

    @Override
    public String commandName() {
        return "pensieve";
    }

    @Override
    public String title() {
        return "Pensieve's retention value (finds blocks behind gaps)";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        return new ScoredReplay(forest, new Retention(forest), blocks, counter).replay();
    }

    private static final class Retention implements ScoredReplay.ScoringPolicy {

        private final PrefixForest forest;
        private final long[] lastActiveMillis;

        Retention(PrefixForest forest) {
            this.forest = forest;
            lastActiveMillis = new long[forest.nodeCount()];
        }

        @Override
        public boolean leavesOnly() {
            return false;
        }

        @Override
        public boolean findsBehindGaps() {
            return true;
        }

        @Override
        public void onFound(int request, int block) {
            lastActiveMillis[forest.node(request, block)] = forest.arrivalMillis(request);
        }

        @Override
        public void onPut(int request, int block) {
            onFound(request, block);
        }

        @Override
        public double score(int node, int request) {
            long from = (long) forest.depth(node) * forest.blockTokens();
            long idle = Math.max(1, forest.arrivalMillis(request) - lastActiveMillis[node]);
            return COST.seconds(from, from + forest.blockTokens()) / (double) idle;
        }
    }
}
