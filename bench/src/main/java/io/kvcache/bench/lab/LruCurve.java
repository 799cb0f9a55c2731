package io.kvcache.bench.lab;

import io.kvcache.bench.replay.TraceForest;

/// LRU's hit ratio at every capacity, from one pass over a trace.
///
/// LRU is a stack: what a smaller cache holds, a larger one holds too. A block is found by every cache
/// that is larger than the number of other blocks used since its last use, which a Fenwick tree over
/// the times of last use counts in O(log n). A request uses its blocks from the last to the first, so a
/// tail is older than its head, and what the request itself has used does not come between. The one
/// difference to a replay is that a request's own blocks cannot push each other out here; it shows at
/// capacities near the length of a prompt.
///
/// Source: Mattson, Gecsei, Slutz, Traiger: "Evaluation techniques for storage hierarchies", IBM
/// Systems Journal 1970.
public final class LruCurve {

    private final long[] hitsAt;
    private final long accesses;

    /// @param warmup leading requests that do not count
    public LruCurve(TraceForest forest, int warmup) {
        long uses = 0;
        for (int request = 0; request < forest.requests(); request++) {
            uses += forest.length(request);
        }
        hitsAt = new long[forest.nodes() + 2];
        accesses = new Pass(forest, Math.toIntExact(uses)).all(warmup);
        for (int blocks = 1; blocks < hitsAt.length; blocks++) {
            hitsAt[blocks] += hitsAt[blocks - 1];
        }
    }

    /// Hits over accesses of an LRU cache of so many blocks.
    public double hitRatio(int blocks) {
        return accesses == 0 ? 0 : (double) hitsAt[Math.clamp(blocks, 0, hitsAt.length - 1)] / accesses;
    }

    /// What no cache can exceed: every block is found that was used before.
    public double ceiling() {
        return hitRatio(hitsAt.length - 1);
    }

    /// The least capacity in blocks with at least this hit ratio, or -1 when there is none.
    public int blocksFor(double hitRatio) {
        if (hitRatio > ceiling()) {
            return -1;
        }
        int low = 0;
        int high = hitsAt.length - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (hitRatio(middle) >= hitRatio) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    private final class Pass {

        private final TraceForest forest;
        /// Fenwick tree over times: 1 where a block was used last.
        private final int[] tree;

        private final int[] lastUse;
        private int time;

        Pass(TraceForest forest, int uses) {
            this.forest = forest;
            tree = new int[uses + 1];
            lastUse = new int[forest.nodes()];
        }

        long all(int warmup) {
            long counted = 0;
            for (int request = 0; request < forest.requests(); request++) {
                int start = time;
                for (int i = forest.length(request) - 1; i >= 0; i--) {
                    int node = forest.node(request, i);
                    int before = lastUse[node];
                    if (before > 0) {
                        if (request >= warmup && i < forest.lookedUp(request)) {
                            hitsAt[younger(start) - younger(before) + 1]++;
                        }
                        add(before, -1);
                    }
                    lastUse[node] = ++time;
                    add(time, 1);
                }
                counted += request >= warmup ? forest.lookedUp(request) : 0;
            }
            return counted;
        }

        private int younger(int until) {
            int sum = 0;
            for (int at = until; at > 0; at -= at & -at) {
                sum += tree[at];
            }
            return sum;
        }

        private void add(int at, int change) {
            for (int i = at; i < tree.length; i += i & -i) {
                tree[i] += change;
            }
        }
    }
}
