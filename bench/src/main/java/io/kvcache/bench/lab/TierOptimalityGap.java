package io.kvcache.bench.lab;

import io.kvcache.bench.replay.BeladyReplay;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.core.policy.PolicyKind;

/// How far there is to go over two tiers: from LRU in both, whose hits are those of the larger, to
/// Belady's rule with bypass in one cache of both sizes together, which no two tiers exceed.
///
/// @param lruHits blocks
/// @param maxHits blocks
record TierOptimalityGap(long lruHits, long maxHits) {

    static TierOptimalityGap of(PrefixForest forest, int hostBlocks, int diskBlocks) {
        int larger = Math.max(hostBlocks, diskBlocks);
        return new TierOptimalityGap(
                new PolicyReplay(PolicyKind.LRU).run(forest, larger, 0).blockHits(),
                new BeladyReplay(true)
                        .run(forest, combinedBlocks(forest, hostBlocks, diskBlocks), 0)
                        .blockHits());
    }

    /// Room for the blocks of both, at most for all that there are.
    static int combinedBlocks(PrefixForest forest, int hostBlocks, int diskBlocks) {
        return Math.clamp((long) hostBlocks + diskBlocks, 1, Math.max(1, forest.nodeCount()));
    }

    /// The share that so many hits close; 0 where there is nothing to gain.
    double closedShare(long hits) {
        return maxHits <= lruHits ? 0 : (double) (hits - lruHits) / (maxHits - lruHits);
    }
}
