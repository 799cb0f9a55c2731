package io.kvcache.bench.lab;

import io.kvcache.bench.replay.PrefixForest;

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
}
