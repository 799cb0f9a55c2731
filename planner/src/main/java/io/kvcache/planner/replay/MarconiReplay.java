package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.OptionalDouble;

/// Replays against Marconi's score.
///
/// Victim is the leaf of the lowest `recency + α × efficiency`, both scaled to lie between 0 and 1 over
/// all leaves that may go. Recency is one by the age; efficiency the floating-point operations that a
/// block saves by its bytes, which for keys and values of equal blocks grows with its depth, because
/// attention does.
///
/// α is 0 until ten times as many requests have come as before the first eviction. Then the requests so
/// far are replayed with each of several α, and the one that found most is kept.
///
/// That is the score alone, for a model of attention layers: what is said there of states that cannot be
/// shortened, of which prefixes to keep, and of nodes with one child has no meaning for blocks of keys
/// and values. Age counts requests here, and the scales are taken once a request, not once a victim.
///
/// Source: Pan et al.: "Marconi: prefix caching for the era of hybrid LLMs", MLSys 2025, section 4.2, by
/// notes on it, as the paper itself was not at hand; so how long to wait for α is ours.
///
/// @param alpha α, when it is not to be chosen
public record MarconiReplay(OptionalDouble alpha) implements SimulatedCache {

    private static final double[] ALPHAS = {0, 0.1, 0.25, 0.5, 1, 2};
    private static final int BOOTSTRAP = 10;

    /// With α chosen on the way.
    public MarconiReplay() {
        this(OptionalDouble.empty());
    }

    @Override
    public String commandName() {
        return "marconi" + (alpha.isPresent() ? " alpha=" + alpha.getAsDouble() : "");
    }

    @Override
    public String title() {
        return "Marconi's score" + (alpha.isPresent() ? ", alpha " + alpha.getAsDouble() : "");
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        MarconiScore score =
                alpha.isPresent() ? new MarconiScore(forest, alpha.getAsDouble()) : new MarconiScore(forest, blocks);
        return new ScoredReplay(forest, score, blocks, counter).replay();
    }

    /// The α that found most in the first requests; the lowest of those that found the same.
    private static double best(PrefixForest forest, int blocks, int requests) {
        double best = 0;
        long most = -1;
        for (double alpha : ALPHAS) {
            long hits = new ScoredReplay(forest, new MarconiScore(forest, alpha), blocks, new HitCounter(forest, 0))
                    .replayFirst(requests)
                    .blockHits();
            if (hits > most) {
                most = hits;
                best = alpha;
            }
        }
        return best;
    }

    private static final class MarconiScore implements ScoredReplay.ScoringPolicy {

        private final PrefixForest forest;
        private final int blocks;
        private double alpha;
        /// The request at which α is chosen: not known before the first eviction, nor when it was given.
        private int chooseAt;

        private boolean chosen;
        private int[] lastUse = {};
        private double leastRecent;
        private double mostRecent;
        private double shallowest;
        private double deepest;

        /// With an α that is chosen on the way.
        MarconiScore(PrefixForest forest, int blocks) {
            this.forest = forest;
            this.blocks = blocks;
        }

        /// With one that stays.
        MarconiScore(PrefixForest forest, double alpha) {
            this(forest, 0);
            this.alpha = alpha;
            chosen = true;
        }

        @Override
        public boolean leavesOnly() {
            return true;
        }

        @Override
        public void onFound(int request, int block) {}

        @Override
        public void onPut(int request, int block) {}

        @Override
        public void prepare(int[] nodes, int count, int request, int[] lastUse) {
            chooseAt = chooseAt == 0 ? BOOTSTRAP * request : chooseAt;
            if (!chosen && request >= chooseAt) {
                chosen = true;
                alpha = best(forest, blocks, request);
            }
            this.lastUse = lastUse;
            leastRecent = Double.MAX_VALUE;
            mostRecent = 0;
            shallowest = Double.MAX_VALUE;
            deepest = 0;
            for (int i = 0; i < count; i++) {
                double recency = recency(nodes[i], request);
                leastRecent = Math.min(leastRecent, recency);
                mostRecent = Math.max(mostRecent, recency);
                shallowest = Math.min(shallowest, forest.depth(nodes[i]));
                deepest = Math.max(deepest, forest.depth(nodes[i]));
            }
        }

        private double recency(int node, int request) {
            return 1.0 / (request - lastUse[node]);
        }

        /// Parents that the scales were not taken over may lie outside of them.
        @Override
        public double score(int node, int request) {
            return scaled(recency(node, request), leastRecent, mostRecent)
                    + alpha * scaled(forest.depth(node), shallowest, deepest);
        }

        private static double scaled(double value, double least, double most) {
            return most > least ? (value - least) / (most - least) : 0;
        }
    }
}
