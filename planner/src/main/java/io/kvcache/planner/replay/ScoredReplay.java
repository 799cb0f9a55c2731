package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.Comparator;
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
}
