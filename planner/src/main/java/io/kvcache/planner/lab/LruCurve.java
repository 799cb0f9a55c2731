package io.kvcache.planner.lab;

import io.kvcache.core.policy.MissRatioCurve.FenwickTree;
import io.kvcache.planner.replay.PrefixForest;
import java.util.function.IntPredicate;

/// LRU's hit ratio at every capacity, from one pass over a trace.
///
/// LRU is a stack: what a smaller cache holds, a larger one holds too, so that a block's [StackDistances]
/// say which caches find it. From [#minExactBlocks()] blocks on this is what a replay finds, to the last hit.
/// In a smaller cache the longest prompts have no room, and their own blocks, which cannot push each
/// other out here, do so there.
public final class LruCurve {

    private final long[] hitsAt;
    private final long accesses;
    private final int exactFrom;

    /// @param warmup leading requests that do not count
    public LruCurve(PrefixForest forest, int warmup) {
        hitsAt = new long[forest.nodeCount() + 2];
        accesses = accesses(forest, warmup);
        exactFrom = longest(forest);
        new StackDistances(forest, _ -> true).run(warmup, _ -> true, (_, others) -> hitsAt[others + 1]++);
        for (int blocks = 1; blocks < hitsAt.length; blocks++) {
            hitsAt[blocks] += hitsAt[blocks - 1];
        }
    }

    /// Blocks looked up by all requests after the first few.
    static long accesses(PrefixForest forest, int warmup) {
        long sum = 0;
        for (int request = warmup; request < forest.requestCount(); request++) {
            sum += forest.lookupBlocks(request);
        }
        return sum;
    }

    private static int longest(PrefixForest forest) {
        int longest = 0;
        for (int request = 0; request < forest.requestCount(); request++) {
            longest = Math.max(longest, forest.storedBlocks(request));
        }
        return longest;
    }

    /// The capacity in blocks from which on the curve is exact: the longest prompt's.
    public int minExactBlocks() {
        return exactFrom;
    }

    /// Blocks looked up.
    public long accesses() {
        return accesses;
    }

    /// Blocks that an LRU cache of so many blocks finds.
    public long hits(int blocks) {
        return hitsAt[Math.clamp(blocks, 0, hitsAt.length - 1)];
    }

    /// Hits over accesses of an LRU cache of so many blocks.
    public double hitRatio(int blocks) {
        return accesses == 0 ? 0 : (double) hits(blocks) / accesses;
    }

    /// Returns the upper bound of every cache: a hit for each block that was used before.
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

    /// LRU's stack distances: for each use of a block, how many other blocks were used since its last use.
    ///
    /// A block is found by every LRU cache that is larger than that number, which a Fenwick tree over the
    /// times of last use counts in O(log n). A request uses its blocks from the last to the first, so a tail
    /// is older than its head, and what the request itself has used does not come between.
    ///
    /// Source: Mattson, Gecsei, Slutz, Traiger: "Evaluation techniques for storage hierarchies", IBM Systems
    /// Journal 1970.
    static final class StackDistances {

        private final PrefixForest forest;
        private final IntPredicate counted;
        /// Over times: 1 where a counted block was used last.
        private final FenwickTree lastUses;
        /// For each block the time of its last use and one, 0 before its first.
        private final int[] lastUse;

        private int time;

        /// Told of each use of a block that was used before.
        interface DistanceSink {
            /// One such use.
            ///
            /// @param others counted blocks that were used since
            void onReuse(int node, int others);
        }

        /// @param counted which blocks count when they are the others
        StackDistances(PrefixForest forest, IntPredicate counted) {
            this.forest = forest;
            this.counted = counted;
            int uses = 0;
            for (int request = 0; request < forest.requestCount(); request++) {
                for (int i = 0; i < forest.storedBlocks(request); i++) {
                    uses += counted.test(forest.node(request, i)) ? 1 : 0;
                }
            }
            lastUses = new FenwickTree(uses);
            lastUse = new int[forest.nodeCount()];
        }

        /// One pass over the trace; may be called once.
        ///
        /// @param warmup leading requests of which the sink is not told
        /// @param wanted blocks of whose uses it is told
        void run(int warmup, IntPredicate wanted, DistanceSink sink) {
            for (int request = 0; request < forest.requestCount(); request++) {
                int start = time;
                int lookedUp = request < warmup ? 0 : forest.lookupBlocks(request);
                for (int i = forest.storedBlocks(request) - 1; i >= 0; i--) {
                    int node = forest.node(request, i);
                    if (i < lookedUp && lastUse[node] > 0 && wanted.test(node)) {
                        sink.onReuse(node, Math.toIntExact(lastUses.sum(start) - lastUses.sum(lastUse[node] - 1)));
                    }
                    onUse(node);
                }
            }
        }

        private void onUse(int node) {
            if (counted.test(node)) {
                if (lastUse[node] > 0) {
                    lastUses.add(lastUse[node] - 1, -1);
                }
                lastUses.add(++time, 1);
            }
            lastUse[node] = time + 1;
        }
    }
}
