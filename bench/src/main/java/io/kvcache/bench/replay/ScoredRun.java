package io.kvcache.bench.replay;

import java.util.Comparator;
import java.util.PriorityQueue;

/// One pass of a trace over a cache whose victims are the blocks of the lowest score.
///
/// Scores change with time, so they are taken anew for each request that needs room, once: of all
/// candidates as many of the lowest are kept as blocks are to be put. That costs a look at each resident
/// block a request, where looking again for each victim would cost one a block.
final class ScoredRun {

    private static final Comparator<Candidate> LOWEST_FIRST = Comparator.comparingDouble(Candidate::score)
            .thenComparingInt(Candidate::lastUse)
            .thenComparingInt(Candidate::node);

    private final TraceForest forest;
    private final Rules rules;
    private final int blocks;
    private final HitCounter counter;
    private final Residents residents;
    private final int[] lastUse;
    private final PriorityQueue<Candidate> candidates = new PriorityQueue<>(LOWEST_FIRST);

    /// What a policy makes of it.
    interface Rules {

        /// Whether only blocks without resident children may go.
        boolean leavesOnly();

        /// Whether a block counts as found that has a missing one before it.
        default boolean findsBehindGaps() {
            return false;
        }

        /// A block was found by a request.
        ///
        /// @param block its place in the request
        void found(int request, int block);

        /// A block was put, being absent.
        void put(int request, int block);

        /// Room is needed, and these are the blocks that may go.
        ///
        /// @param nodes of which the first `count` are meant
        /// @param lastUse for each node the request that used it last
        default void prepare(int[] nodes, int count, int request, int[] lastUse) {}

        /// What a block is worth to a request that needs room.
        double score(int node, int request);

        /// A block had to go.
        default void evicted(int node, double score) {}
    }

    private record Candidate(double score, int lastUse, int node) {}

    ScoredRun(TraceForest forest, Rules rules, int blocks, HitCounter counter) {
        this.forest = forest;
        this.rules = rules;
        this.blocks = blocks;
        this.counter = counter;
        residents = new Residents(forest);
        lastUse = new int[forest.nodes()];
    }

    HitTotals all() {
        return first(forest.requests());
    }

    /// Only the first requests.
    HitTotals first(int requests) {
        for (int request = 0; request < requests; request++) {
            serve(request);
        }
        return counter.totals();
    }

    private void serve(int request) {
        int length = forest.length(request);
        boolean[] found = new boolean[length];
        int hits = 0;
        int absent = 0;
        boolean whole = true;
        for (int i = 0; i < length; i++) {
            int node = forest.node(request, i);
            boolean here = residents.has(node);
            whole &= here;
            found[i] = here && (whole || rules.findsBehindGaps());
            hits += found[i] && i < forest.lookedUp(request) ? 1 : 0;
            absent += here ? 0 : 1;
        }
        counter.count(request, hits);
        for (int i = length - 1; i >= 0; i--) {
            int node = forest.node(request, i);
            lastUse[node] = request;
            if (found[i]) {
                rules.found(request, i);
            }
        }
        counter.served(request, put(request, absent), residents.size());
    }

    /// Returns how many blocks were put.
    private int put(int request, int absent) {
        int needed = residents.size() + absent - blocks;
        if (needed > 0) {
            choose(request, needed);
        }
        int put = 0;
        for (int i = 0; i < forest.length(request); i++) {
            int node = forest.node(request, i);
            if (!residents.has(node)) {
                if (residents.size() == blocks && !makeRoom(request)) {
                    return put;
                }
                residents.enter(node);
                rules.put(request, i);
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
        int parent = residents.leave(victim.node);
        rules.evicted(victim.node, victim.score);
        if (rules.leavesOnly() && parent != TraceForest.NONE && lastUse[parent] != request) {
            candidates.add(candidate(parent, request));
        }
        return true;
    }

    /// The lowest of those that may go; what the request itself uses may not.
    private void choose(int request, int needed) {
        candidates.clear();
        int[] nodes = new int[residents.size()];
        int count = 0;
        for (int i = 0; i < residents.size(); i++) {
            int node = residents.at(i);
            if (lastUse[node] != request && !(rules.leavesOnly() && residents.children(node) > 0)) {
                nodes[count++] = node;
            }
        }
        rules.prepare(nodes, count, request, lastUse);
        PriorityQueue<Candidate> lowest = new PriorityQueue<>(LOWEST_FIRST.reversed());
        for (int i = 0; i < count; i++) {
            Candidate highest = lowest.size() < needed ? null : lowest.peek();
            double score = rules.score(nodes[i], request);
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
        return new Candidate(rules.score(node, request), lastUse[node], node);
    }
}
