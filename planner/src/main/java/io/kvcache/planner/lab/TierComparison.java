package io.kvcache.planner.lab;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.store.TierPort.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.lab.PolicyComparison.Occupancy;
import io.kvcache.planner.lab.TwoTierCacheModel.TierOptimalityGap;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.store.DeviceLogSilencer;
import io.kvcache.planner.store.ScratchDirectory;
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
    public record TierShares(double host, double disk) {}

    /// Both tiers in blocks.
    ///
    /// @param hostBlocks in whole slabs
    /// @param blockBytes real bytes of a block in the store
    private record TierCapacity(int hostBlocks, int diskBlocks, int blockBytes) {}

    /// Distinct full blocks of the trace, of which capacities are shares.
    public int distinctBlocks() {
        return forest.nodeCount();
    }

    /// Blocks that host memory has room for when a share of them is asked for: it comes in whole
    /// slabs.
    public int hostBlocks(double share) {
        return capacity(new TierShares(share, share)).hostBlocks;
    }

    /// Blocks that the disk has room for when a share of them is asked for.
    public int diskBlocks(double share) {
        return capacity(new TierShares(share, share)).diskBlocks;
    }

    /// Returns whether the trace says when requests came.
    public boolean hasTimestamps() {
        return trace.hasTimestamps();
    }

    /// Looks at the folder before anything is run or told.
    ///
    /// @throws IOException when it is not empty
    public void requireEmpty() throws IOException {
        ScratchDirectory.requireEmpty(folder);
    }

    /// Runs one policy with one rule of admission through the store.
    ///
    /// @throws IOException when the folder is not empty
    public TierRow run(EvictionPolicyFactory policy, AdmissionKind admission, TierShares shares) throws IOException {
        TierCapacity capacity = capacity(shares);
        TierReplay.Settings settings = new TierReplay.Settings(
                policy,
                capacity.hostBlocks,
                capacity.blockBytes,
                TierReplay.Settings.disk(folder, capacity.diskBlocks, capacity.blockBytes),
                admission);
        EngineReplay engineReplay = new EngineReplay();
        ScratchDirectory.requireEmpty(folder);
        DeviceLogSilencer.silence();
        try {
            return row(
                    settings,
                    TierReplay.run(forest, settings, TierReplay.RequestRange.of(forest, 0), engineReplay),
                    engineReplay);
        } finally {
            ScratchDirectory.deleteTier(folder);
        }
    }

    private TierRow row(TierReplay.Settings settings, TierReplayResult result, EngineReplay engineReplay) {
        TierCapacity capacity = new TierCapacity(settings.hostBlocks(), settings.diskBlocks(), settings.blockBytes());
        TierReplayResult.DiskWrites diskWrites = result.written();
        double scale = (double) trace.blockBytes(hardware.bytesPerToken()) / settings.blockBytes();
        return TierRow.of(
                setting(
                        "store",
                        settings.policy().commandName(),
                        settings.admission().commandName(),
                        capacity),
                new TierRow.Found(
                        result.totals(),
                        result.hostHits(),
                        gap(capacity).closedShare(result.totals().blockHits()),
                        engineReplay.host.mean(),
                        engineReplay.disk.mean()),
                engineReplay.engineFeed.summary(),
                new TierRow.Written(
                        Math.round(diskWrites.allBytes() * scale),
                        diskWrites.blockBytes() / settings.blockBytes(),
                        1 - diskWrites.savedShare(),
                        diskWrites.bytesPerPutByte()),
                new TierRow.Check(result.check().wrongBlocks(), result.seconds()));
    }

    /// Runs a policy through the model of both tiers, an LRU disk below it.
    public TierRow runModel(SimulatedCache policy, TierShares shares) {
        long start = System.nanoTime();
        TierCapacity capacity = capacity(shares);
        EngineFeed engineFeed = new EngineFeed(trace, hardware, 0);
        TwoTierCacheModel.TierOutcome outcome = new TwoTierCacheModel(forest, capacity.hostBlocks, capacity.diskBlocks)
                .run(policy, gap(capacity), engineFeed);
        double ofPut = outcome.put() == 0 ? 0 : (double) outcome.written() / outcome.put();
        return TierRow.of(
                setting("model", policy.commandName(), AdmissionKind.ALWAYS.commandName(), capacity),
                outcome.found(),
                engineFeed.summary(),
                new TierRow.Written(
                        outcome.written() * trace.blockBytes(hardware.bytesPerToken()),
                        outcome.written(),
                        ofPut,
                        ofPut),
                new TierRow.Check(0, (System.nanoTime() - start) / 1e9));
    }

    private TierRow.Setting setting(String run, String policy, String admission, TierCapacity capacity) {
        return new TierRow.Setting(
                trace.name(), run, policy, admission, capacity.hostBlocks, capacity.diskBlocks, forest.nodeCount());
    }

    private TierOptimalityGap gap(TierCapacity capacity) {
        return gaps.computeIfAbsent(capacity, each -> TierOptimalityGap.of(forest, each.hostBlocks, each.diskBlocks));
    }

    private TierCapacity capacity(TierShares shares) {
        int host = (int) Math.max(1, Math.round(shares.host * forest.nodeCount()));
        int disk = (int) Math.max(1, Math.round(shares.disk * forest.nodeCount()));
        int blockBytes = blockBytes(host);
        long slab = SlabPool.MAX_SLAB_BYTES / blockBytes;
        return new TierCapacity(Math.toIntExact(Math.ceilDiv(host, slab) * slab), disk, blockBytes);
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
        public void found(int number, int hostBlocks, int blocks) {
            engineFeed.serve(number, hostBlocks, blocks);
        }

        @Override
        public void onServed(int request, TieredKvCache cache, long put) {
            host.add(cache.stats().host().heldBytes(), cache.stats().host().capacityBytes());
            DiskTierStats.LiveUsage liveUsage = cache.offloadStats().disks().getFirst();
            disk.add(liveUsage.bytes(), liveUsage.limitBytes());
        }
    }
}
