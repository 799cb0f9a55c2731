package io.kvcache.planner.lab;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.lab.PolicyComparison.Occupancy;
import io.kvcache.planner.lab.TierComparison.TwoTierCacheModel.TierOptimalityGap;
import io.kvcache.planner.replay.BeladyReplay;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.store.TierReplay.TierReplayResult;
import io.kvcache.planner.trace.Trace;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/// Replays a trace through host memory and a disk, and through a model of an engine with what was
/// found in each: the store's own policies through the store, with small blocks of real bytes;
/// others through a model of the tiers, at the same capacities.
public final class TierComparison {

    /// Block sizes that fill their slots; the smallest is taken for which whole slabs of 32 MiB come near
    /// the wanted number.
    private static final int[] BLOCK_BYTES = {4 << 10, 16 << 10, 64 << 10};

    private static final double MAX_OVERSHOOT = 1.2;

    private final Trace trace;
    private final PrefixForest forest;
    private final Path folder;
    private final EngineHardware hardware;
    private final Map<TierCapacity, TierOptimalityGap> gaps = new HashMap<>();

    /// @param hardware that moves and computes a model's KV
    /// @param folder for the disk; must be empty, and is empty again after each run
    public TierComparison(Trace trace, EngineHardware hardware, Path folder) {
        this.trace = trace;
        this.hardware = hardware;
        this.folder = folder;
        forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
    }

    /// Shares of the trace's distinct blocks, above 0 to 1.
    ///
    /// @param device 0 where the engine's device keeps none
    public record TierShares(double device, double host, double disk) {}

    /// The tiers in blocks.
    ///
    /// @param deviceBlocks in whole regions
    /// @param hostBlocks in whole slabs
    /// @param blockBytes real bytes of a block in the store
    private record TierCapacity(int deviceBlocks, int hostBlocks, int diskBlocks, int blockBytes) {}

    /// Distinct full blocks of the trace, of which capacities are shares.
    public int distinctBlocks() {
        return forest.nodeCount();
    }

    /// Blocks that host memory has room for when a share of them is asked for: it comes in whole
    /// slabs.
    public int hostBlocks(double share) {
        return capacity(new TierShares(0, share, share)).hostBlocks;
    }

    /// Blocks that the disk has room for when a share of them is asked for.
    public int diskBlocks(double share) {
        return capacity(new TierShares(0, share, share)).diskBlocks;
    }

    /// Returns whether the trace says when requests came.
    public boolean hasTimestamps() {
        return trace.hasTimestamps();
    }

    /// Looks at the folder before anything is run or told.
    ///
    /// @throws IOException when it is not empty
    public void requireEmpty() throws IOException {
        TierReplay.requireEmpty(folder);
    }

    /// Runs one policy with one rule of admission through the store.
    ///
    /// @throws IOException when the folder is not empty
    public ResultRow run(EvictionPolicyFactory policy, AdmissionKind admission, TierShares shares) throws IOException {
        TierCapacity capacity = capacity(shares);
        TierReplay.Settings settings = new TierReplay.Settings(
                policy,
                capacity.hostBlocks,
                capacity.blockBytes,
                TierReplay.Settings.disk(folder, capacity.diskBlocks, capacity.blockBytes),
                admission,
                capacity.deviceBlocks == 0
                        ? 0
                        : TierReplay.Settings.deviceBytes(capacity.deviceBlocks, capacity.blockBytes));
        EngineReplay engineReplay = new EngineReplay();
        TierReplay.requireEmpty(folder);
        TierReplay.silenceTiers();
        try {
            return row(
                    settings,
                    capacity,
                    TierReplay.run(forest, settings, TierReplay.RequestRange.of(forest, 0), engineReplay),
                    engineReplay);
        } finally {
            TierReplay.deleteTier(folder);
        }
    }

    private ResultRow row(
            TierReplay.Settings settings, TierCapacity capacity, TierReplayResult result, EngineReplay engineReplay) {
        TierReplayResult.DiskWrites diskWrites = result.written();
        double scale = (double) trace.blockBytes(hardware.bytesPerToken()) / settings.blockBytes();
        Found found = new Found(
                result.totals(),
                result.deviceHits(),
                result.hostHits(),
                gap(capacity).closedShare(result.totals().blockHits()),
                engineReplay.host.mean(),
                engineReplay.disk.mean());
        String policy = settings.policy().commandName();
        return row("store", policy, settings.admission(), capacity, found, engineReplay.engineFeed.summary())
                .put("diskBytesWritten", Math.round(diskWrites.allBytes() * scale))
                .put("diskBlocksWritten", diskWrites.blockBytes() / settings.blockBytes())
                .put("writtenOfPut", 1 - diskWrites.savedShare())
                .put("diskBytesOfPut", diskWrites.bytesPerPutByte())
                .put("wrongBlocks", result.check().wrongBlocks())
                .put("seconds", result.seconds());
    }

    /// Runs a policy through the model of host memory and an LRU disk below it, without a device.
    public ResultRow runModel(SimulatedCache policy, TierShares shares) {
        long start = System.nanoTime();
        TierCapacity capacity = capacity(new TierShares(0, shares.host, shares.disk));
        EngineFeed engineFeed = new EngineFeed(trace, hardware, 0);
        TwoTierCacheModel.TierOutcome outcome = new TwoTierCacheModel(forest, capacity.hostBlocks, capacity.diskBlocks)
                .run(policy, gap(capacity), engineFeed);
        double ofPut = outcome.put() == 0 ? 0 : (double) outcome.written() / outcome.put();
        AdmissionKind all = AdmissionKind.ALWAYS;
        return row("model", policy.commandName(), all, capacity, outcome.found(), engineFeed.summary())
                .put("diskBytesWritten", outcome.written() * trace.blockBytes(hardware.bytesPerToken()))
                .put("diskBlocksWritten", outcome.written())
                .put("writtenOfPut", ofPut)
                .put("diskBytesOfPut", ofPut)
                .put("wrongBlocks", 0)
                .put("seconds", (System.nanoTime() - start) / 1e9);
    }

    /// One policy over host memory and a disk, without what was written.
    ///
    /// - `run` is `store` where the store itself was driven, with real blocks and a real disk, and `model`
    ///   where caches without blocks stood in for both tiers; a model writes all that is put, without tables.
    /// - Hit ratios are of the blocks looked up, in both tiers; `gapClosed` is the share of the way from LRU
    ///   over LRU to Belady with room for both tiers' blocks.
    /// - `hostBytesRead` is of the model's KV, without what came from disk. `writtenOfPut` is of the blocks
    ///   put, which a write-through store would all write; `diskBytesOfPut` counts all bytes that the disk
    ///   was given.
    private ResultRow row(
            String run,
            String policy,
            AdmissionKind admission,
            TierCapacity capacity,
            Found found,
            EngineSimulator.Summary engine) {
        long accesses = found.totals.blockAccesses();
        return new ResultRow()
                .put("trace", trace.name())
                .put("run", run)
                .put("policy", policy)
                .put("admission", admission.commandName())
                .put("deviceBlocks", capacity.deviceBlocks)
                .put("deviceShare", (double) capacity.deviceBlocks / forest.nodeCount())
                .put("hostBlocks", capacity.hostBlocks)
                .put("hostShare", (double) capacity.hostBlocks / forest.nodeCount())
                .put("diskBlocks", capacity.diskBlocks)
                .put("diskShare", (double) capacity.diskBlocks / forest.nodeCount())
                .put("blockHitRatio", found.totals.blockHitRatio())
                .put("tokenHitRatio", found.totals.tokenHitRatio())
                .put("deviceHitRatio", accesses == 0 ? 0.0 : (double) found.deviceHits / accesses)
                .put("hostHitRatio", accesses == 0 ? 0.0 : (double) found.hostHits / accesses)
                .put("gapClosed", found.gapClosed)
                .put("prefillSecondsSaved", engine.prefillSecondsSaved())
                .put("loadSeconds", engine.loadSeconds())
                .put("savedLessLoadingSeconds", engine.prefillSecondsSaved() - engine.loadSeconds())
                .put("ttftP50Seconds", engine.p50Seconds())
                .put("ttftP99Seconds", engine.p99Seconds())
                .put("hostOccupancy", found.hostOccupancy)
                .put("diskOccupancy", found.diskOccupancy)
                .put("hostBytesRead", engine.hostBytesRead())
                .put("diskBytesRead", engine.diskBytesRead());
    }

    private TierOptimalityGap gap(TierCapacity capacity) {
        return gaps.computeIfAbsent(capacity, each -> TierOptimalityGap.of(forest, each.hostBlocks, each.diskBlocks));
    }

    private TierCapacity capacity(TierShares shares) {
        int host = (int) Math.max(1, Math.round(shares.host * forest.nodeCount()));
        int disk = (int) Math.max(1, Math.round(shares.disk * forest.nodeCount()));
        int blockBytes = blockBytes(host);
        long slab = SlabPool.MAX_SLAB_BYTES / blockBytes;
        return new TierCapacity(
                deviceBlocks(shares.device, blockBytes),
                Math.toIntExact(Math.ceilDiv(host, slab) * slab),
                disk,
                blockBytes);
    }

    private int deviceBlocks(double share, int blockBytes) {
        int wanted = (int) Math.round(share * forest.nodeCount());
        return share == 0 ? 0 : TierReplay.Settings.deviceBlocks(Math.max(1, wanted), blockBytes);
    }

    private static int blockBytes(int hostBlocks) {
        for (int bytes : BLOCK_BYTES) {
            long slab = SlabPool.MAX_SLAB_BYTES / bytes;
            if (Math.ceilDiv(hostBlocks, slab) * slab <= MAX_OVERSHOOT * hostBlocks) {
                return bytes;
            }
        }
        return BLOCK_BYTES[BLOCK_BYTES.length - 1];
    }

    private final class EngineReplay implements TierReplay.RequestListener {

        private final EngineFeed engineFeed = new EngineFeed(trace, hardware, 0);
        private final Occupancy host = new Occupancy();
        private final Occupancy disk = new Occupancy();

        @Override
        public void found(int number, TierReplay.BlocksFound found) {
            engineFeed.serve(number, found.device(), found.device() + found.host(), found.blocks());
        }

        @Override
        public void onServed(int request, TieredKvCache cache, long put) {
            host.add(cache.stats().host().heldBytes(), cache.stats().host().capacityBytes());
            DiskTierStats.LiveUsage liveUsage = cache.offloadStats().disks().getFirst();
            disk.add(liveUsage.bytes(), liveUsage.limitBytes());
        }
    }

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
    static final class TwoTierCacheModel {

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
        record TierOutcome(Found found, long put, long written) {}

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
                    new Found(
                            all.totals(),
                            0,
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

    /// The hits of a run, and how full the tiers were, the mean over the requests.
    record Found(
            HitTotals totals,
            long deviceHits,
            long hostHits,
            double gapClosed,
            double hostOccupancy,
            double diskOccupancy) {}
}
