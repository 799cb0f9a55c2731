package io.kvcache.planner.lab;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.lab.PolicyComparison.Occupancy;
import io.kvcache.planner.replay.BeladyReplay;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;

/// Host memory and a disk as two caches that know no blocks: one of any policy over one of LRU.
///
/// For policies that the store does not have. Whatever is put or used is in the disk's order too,
/// so the disk writes all that it does not hold, and what leaves host memory is on disk for as long
/// as LRU keeps it. A request finds the longer of the prefixes that the tiers have: what one has
/// behind a gap of the other does not count, so a cache that keeps blocks without those before them
/// may find a little more than is said here. What comes from disk enters host memory as if it had
/// been computed. Tables, reclaiming, failures and limits of writing are left out.
///
/// Belady's rule has no LRU below it but itself, with room for both tiers' blocks: it is the bound,
/// and what it writes is all that it keeps.
final class TwoTierCacheModel {

    private final PrefixForest forest;
    private final int hostBlocks;
    private final int diskBlocks;

    TwoTierCacheModel(PrefixForest forest, int hostBlocks, int diskBlocks) {
        this.forest = forest;
        this.hostBlocks = hostBlocks;
        this.diskBlocks = diskBlocks;
    }

    /// The result of both tiers.
    ///
    /// @param put blocks that no tier had
    /// @param written blocks that the disk did not hold when they were used
    record TierOutcome(TierRow.Found found, long put, long written) {}

    /// Runs both, and serves what was found.
    TierOutcome run(SimulatedCache policy, TierOptimalityGap gap, EngineFeed engineFeed) {
        boolean bound = policy instanceof BeladyReplay;
        int below = bound ? TierOptimalityGap.combinedBlocks(forest, hostBlocks, diskBlocks) : diskBlocks;
        TierPass host = pass(policy, hostBlocks);
        TierPass disk = pass(bound ? policy : new PolicyReplay(PolicyKind.LRU), below);
        HitCounter all = new HitCounter(forest, 0);
        HitCounter inHost = new HitCounter(forest, 0);
        long put = 0;
        for (int request = 0; request < forest.requestCount(); request++) {
            int found = Math.max(host.found[request], disk.found[request]);
            all.onRequest(request, found);
            inHost.onRequest(request, host.found[request]);
            put += forest.storedBlocks(request) - found;
            engineFeed.serve(request, host.found[request], found);
        }
        long hits = all.totals().blockHits();
        return new TierOutcome(
                new TierRow.Found(
                        all.totals(),
                        inHost.totals().blockHits(),
                        gap.closedShare(hits),
                        host.occupancy.mean(),
                        disk.occupancy.mean()),
                put,
                disk.put);
    }

    private TierPass pass(SimulatedCache policy, int blocks) {
        TierPass pass = new TierPass(forest.requestCount(), blocks);
        policy.run(forest, blocks, new HitCounter(forest, 0, pass));
        return pass;
    }

    /// One tier, request by request.
    private static final class TierPass implements ReplayListener {

        private final int[] found;
        private final int blocks;
        private final Occupancy occupancy = new Occupancy();
        private long put;

        TierPass(int requests, int blocks) {
            found = new int[requests];
            this.blocks = blocks;
        }

        @Override
        public void onFound(int request, int hits) {
            found[request] = hits;
        }

        @Override
        public void onServed(int request, int added, int held) {
            put += added;
            occupancy.add(held, blocks);
        }
    }

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
}
