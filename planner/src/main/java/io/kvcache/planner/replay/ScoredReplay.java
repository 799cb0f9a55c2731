package io.kvcache.planner.replay;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.Comparator;
import java.util.OptionalDouble;
import java.util.PriorityQueue;

/// One pass of a trace over a cache whose victims are the blocks of the lowest score.
///
/// Scores change with time, so they are taken anew for each request that needs room, once: of all
/// candidates as many of the lowest are kept as blocks are to be put. That costs a look at each resident
/// block a request, where looking again for each victim would cost one a block.
final class ScoredReplay {

    private static final Comparator<Candidate> LOWEST_FIRST = Comparator.comparingDouble(Candidate::score)
            .thenComparingInt(Candidate::lastUse)
            .thenComparingInt(Candidate::node);

    private final PrefixForest forest;
    private final ScoringPolicy scoringPolicy;
    private final int blocks;
    private final HitCounter counter;
    private final ResidentSet residentSet;
    private final int[] lastUse;
    private final PriorityQueue<Candidate> candidates = new PriorityQueue<>(LOWEST_FIRST);

    /// A policy that scores blocks.
    interface ScoringPolicy {

        /// Returns whether only blocks without resident children may be evicted.
        boolean leavesOnly();

        /// Returns whether a block counts as found that has a missing one before it.
        default boolean findsBehindGaps() {
            return false;
        }

        /// A block was found by a request.
        ///
        /// @param block its place in the request
        void onFound(int request, int block);

        /// A block was put, being absent.
        void onPut(int request, int block);

        /// Room is needed, and these are the blocks that may go.
        ///
        /// @param nodes of which the first `count` are meant
        /// @param lastUse for each node the request that used it last
        default void prepare(int[] nodes, int count, int request, int[] lastUse) {}

        /// Returns the score of a block when a request needs room.
        double score(int node, int request);

        /// A block had to go.
        default void onEvicted(int node, double score) {}
    }

    private record Candidate(double score, int lastUse, int node) {}

    ScoredReplay(PrefixForest forest, ScoringPolicy scoringPolicy, int blocks, HitCounter counter) {
        this.forest = forest;
        this.scoringPolicy = scoringPolicy;
        this.blocks = blocks;
        this.counter = counter;
        residentSet = new ResidentSet(forest);
        lastUse = new int[forest.nodeCount()];
    }

    HitTotals replay() {
        return replayFirst(forest.requestCount());
    }

    /// Only the first requests.
    HitTotals replayFirst(int requests) {
        for (int request = 0; request < requests; request++) {
            serve(request);
        }
        return counter.totals();
    }

    private void serve(int request) {
        int length = forest.storedBlocks(request);
        boolean[] found = new boolean[length];
        int hits = 0;
        int absent = 0;
        boolean whole = true;
        for (int i = 0; i < length; i++) {
            int node = forest.node(request, i);
            boolean here = residentSet.contains(node);
            whole &= here;
            found[i] = here && (whole || scoringPolicy.findsBehindGaps());
            hits += found[i] && i < forest.lookupBlocks(request) ? 1 : 0;
            absent += here ? 0 : 1;
        }
        counter.onRequest(request, hits);
        for (int i = length - 1; i >= 0; i--) {
            int node = forest.node(request, i);
            lastUse[node] = request;
            if (found[i]) {
                scoringPolicy.onFound(request, i);
            }
        }
        counter.onServed(request, put(request, absent), residentSet.size());
    }

    /// Returns how many blocks were put.
    private int put(int request, int absent) {
        int needed = residentSet.size() + absent - blocks;
        if (needed > 0) {
            chooseVictims(request, needed);
        }
        int put = 0;
        for (int i = 0; i < forest.storedBlocks(request); i++) {
            int node = forest.node(request, i);
            if (!residentSet.contains(node)) {
                if (residentSet.size() == blocks && !makeRoom(request)) {
                    return put;
                }
                residentSet.add(node);
                scoringPolicy.onPut(request, i);
                put++;
            }
        }
        return put;
    }

    private boolean makeRoom(int request) {
        Candidate victim = candidates.poll();
        if (victim == null) {
            return false;
        }
        int parent = residentSet.remove(victim.node);
        scoringPolicy.onEvicted(victim.node, victim.score);
        if (scoringPolicy.leavesOnly() && parent != PrefixForest.NONE && lastUse[parent] != request) {
            candidates.add(candidate(parent, request));
        }
        return true;
    }

    /// The lowest of those that may go; what the request itself uses may not.
    private void chooseVictims(int request, int needed) {
        candidates.clear();
        int[] nodes = new int[residentSet.size()];
        int count = 0;
        for (int i = 0; i < residentSet.size(); i++) {
            int node = residentSet.get(i);
            if (lastUse[node] != request && !(scoringPolicy.leavesOnly() && residentSet.childCount(node) > 0)) {
                nodes[count++] = node;
            }
        }
        scoringPolicy.prepare(nodes, count, request, lastUse);
        PriorityQueue<Candidate> lowest = new PriorityQueue<>(LOWEST_FIRST.reversed());
        for (int i = 0; i < count; i++) {
            Candidate highest = lowest.size() < needed ? null : lowest.peek();
            double score = scoringPolicy.score(nodes[i], request);
            if (highest == null) {
                lowest.add(new Candidate(score, lastUse[nodes[i]], nodes[i]));
            } else if (score <= highest.score) {
                lowest.add(new Candidate(score, lastUse[nodes[i]], nodes[i]));
                lowest.remove();
            }
        }
        candidates.addAll(lowest);
    }

    private Candidate candidate(int node, int request) {
        return new Candidate(scoringPolicy.score(node, request), lastUse[node], node);
    }

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
        public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
            MarconiScore score = alpha.isPresent()
                    ? new MarconiScore(forest, alpha.getAsDouble())
                    : new MarconiScore(forest, blocks);
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
}
