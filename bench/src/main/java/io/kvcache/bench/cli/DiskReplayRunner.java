package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningRows.Figure;
import io.kvcache.bench.cli.ReplayOptions.ReplayDiskOption;
import io.kvcache.bench.replay.HitCounter.HitTotals;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.store.ScratchDirectory;
import io.kvcache.bench.store.TierReplay;
import io.kvcache.bench.store.TierReplay.Settings;
import io.kvcache.bench.store.TierReplay.TierReplayResult;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.tiers.disk.DiskGeometry;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

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

    /// Names of the fields that tell the rows of a trace apart.
    static final List<String> KEYS = List.of("rule", "hostBlocks", "diskBlocks", "policy", "admission");

    /// What a table over several seeds shows.
    static final List<Figure> FIGURES = List.of(
            Figure.percent("block hits", "blockHitRatio"),
            Figure.percent("in host memory", "hostHitRatio"),
            Figure.percent("from disk", "diskHitRatio"),
            Figure.percent("one LRU", "oneLruHitRatio"),
            Figure.percent("writes saved", "writesSaved"));

    /// One policy with one rule of admission. Hit ratios are of blocks, but for `tokenHitRatio`.
    ///
    /// @param regionShare of the disk's file, that of one region
    private record DiskRow(
            String trace,
            String rule,
            int warmupRequests,
            String policy,
            String admission,
            int hostBlocks,
            int diskBlocks,
            int blockBytes,
            double regionShare,
            double blockHitRatio,
            double hostHitRatio,
            double diskHitRatio,
            long deviceBytes,
            double deviceHitRatio,
            double tokenHitRatio,
            double oneLruHitRatio,
            long putBytes,
            long diskBlockBytes,
            long diskBytes,
            double writeAmplification,
            double writesSaved,
            long evictedUnwritten,
            long blocksServed,
            long wrongBlocks,
            long notArrived,
            double seconds) {

        double pointsBelowOneLru() {
            return 100 * (oneLruHitRatio - blockHitRatio);
        }
    }

    /// Runs every policy with every capacity of host memory and every rule for what is written.
    ///
    /// @return whether every byte was right
    /// @throws IOException when the directory is not empty: a replay begins with nothing
    boolean run(PrefixForest forest, int warmup) throws IOException {
        boolean right = true;
        for (int blocks : choices.capacities().blocks(forest.blockTokens())) {
            for (PolicyReplay policy : choices.storePolicies()) {
                List<DiskRow> rows = new ArrayList<>();
                for (AdmissionKind admission : disk.admissions()) {
                    Settings settings = new Settings(
                            policy.kind(), blocks, blockBytes, disk.options(blockBytes), admission, deviceBytes);
                    DiskRow row = replay(forest, settings, warmup);
                    rows.add(row);
                    right &= row.wrongBlocks == 0;
                }
                compare(rows);
            }
        }
        return right;
    }

    private DiskRow replay(PrefixForest forest, Settings settings, int warmup) throws IOException {
        ScratchDirectory.requireEmpty(disk.directory());
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
            ScratchDirectory.deleteTier(disk.directory());
        }
        output.progress().close();
        DiskRow row = row(forest, settings, result, warmup);
        output.print(row, text(row));
        return row;
    }

    private DiskRow row(PrefixForest forest, Settings settings, TierReplayResult result, int warmup) {
        HitTotals oneLru = new PolicyReplay(PolicyKind.LRU).run(forest, settings.diskBlocks(), warmup);
        DiskGeometry geometry = DiskGeometry.of(settings.disk().bytes());
        return new DiskRow(
                output.trace(),
                forest.rule().commandName(),
                warmup,
                settings.policy().commandName(),
                settings.admission().commandName(),
                settings.hostBlocks(),
                settings.diskBlocks(),
                settings.blockBytes(),
                (double) geometry.regionBytes() / geometry.deviceBytes(),
                result.totals().blockHitRatio(),
                result.hostHitRatio(),
                result.diskHitRatio(),
                settings.deviceBytes(),
                result.deviceHitRatio(),
                result.totals().tokenHitRatio(),
                oneLru.blockHitRatio(),
                result.written().putBytes(),
                result.written().blockBytes(),
                result.written().allBytes(),
                result.written().writeAmplification(),
                result.written().savedShare(),
                result.written().evictedUnwritten(),
                result.check().blocksServed(),
                result.check().wrongBlocks(),
                result.check().notArrived(),
                result.seconds());
    }

    private static String text(DiskRow row) {
        return row.deviceBytes == 0 ? tiers(row) : tiers(row) + device(row);
    }

    private static String device(DiskRow row) {
        return String.format(
                Locale.ROOT,
                "%n  device   %s of blocks found first on a device of %s (host memory plays it)",
                PlanningRows.percent(row.deviceHitRatio),
                new ByteSizeText(row.deviceBytes));
    }

    private static String tiers(DiskRow row) {
        return String.format(
                        Locale.ROOT,
                        "%s, %s: %,d blocks in host memory, %,d alive on disk, of %s (%s)%n"
                                + "  hits     %s of blocks = %s in host memory + %s from disk;"
                                + " one LRU of %,d has %s, %+.2f points%n"
                                + "  writes   %s of blocks for %s put = %.1f %% saved; %.2f bytes for each byte;"
                                + " %,d evicted unwritten%n"
                                + "  correct  %,d blocks served, %,d wrong, %,d did not come   %.1f s",
                        row.policy,
                        row.admission,
                        row.hostBlocks,
                        row.diskBlocks,
                        new ByteSizeText(row.blockBytes),
                        row.rule,
                        PlanningRows.percent(row.blockHitRatio),
                        PlanningRows.percent(row.hostHitRatio),
                        PlanningRows.percent(row.diskHitRatio),
                        row.diskBlocks,
                        PlanningRows.percent(row.oneLruHitRatio),
                        -row.pointsBelowOneLru(),
                        size(row.diskBlockBytes),
                        size(row.putBytes),
                        100 * row.writesSaved,
                        row.writeAmplification,
                        row.evictedUnwritten,
                        row.blocksServed,
                        row.wrongBlocks,
                        row.notArrived,
                        row.seconds)
                + remarks(row.writesSaved, row.notArrived);
    }

    /// Explains numbers that look like mistakes.
    static String remarks(double writesSaved, long notArrived) {
        String remarks = "";
        if (writesSaved < 0) {
            remarks += String.format(
                    Locale.ROOT, "%n  less than 0 %% saved: blocks that the disk had given up came to it again");
        }
        if (notArrived > 0) {
            remarks += String.format(
                    Locale.ROOT,
                    "%n  did not come: the disk had them at the look-up, and they were gone, unreadable or"
                            + " without room in memory at the read; they count as misses");
        }
        return remarks;
    }

    /// Prints the writes that the second rule saves over the first, and the hits that it costs.
    private void compare(List<DiskRow> rows) {
        if (rows.size() < 2 || !output.rows().isText()) {
            return;
        }
        DiskRow first = rows.getFirst();
        for (DiskRow other : rows.subList(1, rows.size())) {
            output.io()
                    .println(String.format(
                            Locale.ROOT,
                            "%s saves %.1f %% of the bytes that %s writes, and costs %.2f points of hits",
                            other.admission,
                            100 * (1 - (double) other.diskBytes / Math.max(1, first.diskBytes)),
                            first.admission,
                            100 * (first.blockHitRatio - other.blockHitRatio)));
        }
    }

    private static String size(long bytes) {
        return bytes == 0 ? "0 B" : new ByteSizeText(bytes).toString();
    }
}
