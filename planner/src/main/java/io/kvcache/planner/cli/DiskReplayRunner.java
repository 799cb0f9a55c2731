package io.kvcache.planner.cli;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.cli.ReplayOptions.ReplayDiskOption;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.store.TierReplay.Settings;
import io.kvcache.planner.store.TierReplay.TierReplayResult;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.tiers.disk.DiskGeometry;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/// `kvcache replay --disk`: the same replay through host memory and a disk, with real block contents, beside one
/// LRU of all blocks that the disk may hold.
final class DiskReplayRunner {

    private final ReplayOptions choices;
    private final ReplayDiskOption disk;
    private final int blockBytes;
    private final long deviceBytes;
    private final StoreReplayRunner.Output output;

    /// @param deviceBytes of a device in front of the disk, 0 for none
    DiskReplayRunner(
            ReplayOptions choices,
            ReplayDiskOption disk,
            int blockBytes,
            long deviceBytes,
            StoreReplayRunner.Output output) {
        this.choices = choices;
        this.disk = disk;
        this.blockBytes = blockBytes;
        this.deviceBytes = deviceBytes;
        this.output = output;
    }

    static final List<Column> COLUMNS = List.of(
            Column.key("rule"),
            Column.key("hostBlocks"),
            Column.key("diskBlocks"),
            Column.key("policy"),
            Column.key("admission"),
            Column.percent("block hits", "blockHitRatio"),
            Column.percent("in host memory", "hostHitRatio"),
            Column.percent("from disk", "diskHitRatio"),
            Column.percent("on device", "deviceHitRatio"),
            Column.percent("one LRU", "oneLruHitRatio"),
            Column.bytes("put", "putBytes"),
            Column.bytes("disk bytes", "diskBytes"),
            Column.percent("writes saved", "writesSaved"),
            Column.number("amplification", "writeAmplification"),
            Column.count("evicted unwritten", "evictedUnwritten"),
            Column.count("blocks served", "blocksServed"),
            Column.count("wrong", "wrongBlocks"),
            Column.count("did not come", "notArrived"),
            Column.seconds("seconds", "seconds"));

    /// Runs every policy with every capacity of host memory and every rule for what is written.
    ///
    /// @return whether every byte was right
    /// @throws IOException when the directory is not empty: a replay begins with nothing
    boolean run(PrefixForest forest, int warmup) throws IOException {
        boolean right = true;
        output.rows()
                .head(
                        "%s: blocks of %s in host memory and on disk; one LRU has as many blocks as the disk",
                        output.trace().name(), new ByteSizeText(blockBytes));
        for (int blocks : choices.capacities().blocks(forest.blockTokens())) {
            for (PolicyReplay policy : choices.storePolicies()) {
                for (AdmissionKind admission : disk.admissions()) {
                    Settings settings = new Settings(
                            policy.kind(), blocks, blockBytes, disk.options(blockBytes), admission, deviceBytes);
                    right &= replay(forest, settings, warmup);
                }
            }
        }
        return right;
    }

    /// Returns whether every byte was right.
    private boolean replay(PrefixForest forest, Settings settings, int warmup) throws IOException {
        TierReplay.requireEmpty(disk.directory());
        String what = settings.admission().commandName() + " with " + settings.hostBlocks() + " blocks in host memory";
        TierReplayResult result;
        try {
            result = TierReplay.run(
                    forest,
                    settings,
                    TierReplay.RequestRange.of(forest, warmup),
                    (request, _, _) ->
                            output.progress().update(what + ": request " + request + " of " + forest.requestCount()));
        } finally {
            TierReplay.deleteTier(disk.directory());
        }
        output.progress().close();
        output.rows().add(row(forest, settings, result, warmup));
        remarks(result.written().savedShare(), result.check().notArrived()).forEach(output.rows()::note);
        return result.check().wrongBlocks() == 0;
    }

    /// One policy with one rule of admission. Hit ratios are of blocks, but for `tokenHitRatio`; `regionShare` is
    /// that of one region of the disk's file.
    private ResultRow row(PrefixForest forest, Settings settings, TierReplayResult result, int warmup) {
        HitTotals oneLru = new PolicyReplay(PolicyKind.LRU).run(forest, settings.diskBlocks(), warmup);
        DiskGeometry geometry = DiskGeometry.of(settings.disk().bytes());
        return new ResultRow()
                .put("trace", output.trace().name())
                .put("rule", forest.rule().commandName())
                .put("warmupRequests", warmup)
                .put("policy", settings.policy().commandName())
                .put("admission", settings.admission().commandName())
                .put("hostBlocks", settings.hostBlocks())
                .put("diskBlocks", settings.diskBlocks())
                .put("blockBytes", settings.blockBytes())
                .put("regionShare", (double) geometry.regionBytes() / geometry.deviceBytes())
                .put("blockHitRatio", result.totals().blockHitRatio())
                .put("hostHitRatio", result.hostHitRatio())
                .put("diskHitRatio", result.diskHitRatio())
                .put("deviceBytes", settings.deviceBytes())
                .put("deviceHitRatio", result.deviceHitRatio())
                .put("tokenHitRatio", result.totals().tokenHitRatio())
                .put("oneLruHitRatio", oneLru.blockHitRatio())
                .put("putBytes", result.written().putBytes())
                .put("diskBlockBytes", result.written().blockBytes())
                .put("diskBytes", result.written().allBytes())
                .put("writeAmplification", result.written().writeAmplification())
                .put("writesSaved", result.written().savedShare())
                .put("evictedUnwritten", result.written().evictedUnwritten())
                .put("blocksServed", result.check().blocksServed())
                .put("wrongBlocks", result.check().wrongBlocks())
                .put("notArrived", result.check().notArrived())
                .put("seconds", result.seconds());
    }

    /// Explains numbers that look like mistakes.
    static List<String> remarks(double writesSaved, long notArrived) {
        List<String> remarks = new ArrayList<>();
        if (writesSaved < 0) {
            remarks.add("less than 0 % saved: blocks that the disk had given up came to it again");
        }
        if (notArrived > 0) {
            remarks.add("did not come: the disk had them at the look-up, and they were gone, unreadable or"
                    + " without room in memory at the read; they count as misses");
        }
        return remarks;
    }
}
