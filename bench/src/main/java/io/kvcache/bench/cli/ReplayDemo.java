package io.kvcache.bench.cli;

import io.kvcache.bench.cli.DemoReport.DemoResult;
import io.kvcache.bench.crash.CrashReplay;
import io.kvcache.bench.disk.CodedDiskRounds;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.BeladyReplay;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.MemoryCopySpeed;
import io.kvcache.planner.store.ScratchDirectory;
import io.kvcache.planner.store.StoreReplay;
import io.kvcache.planner.store.StoreReplay.StoreReplayResult;
import io.kvcache.planner.trace.Trace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Replays one trace at several capacities by metadata, and at one of them through the real store with real bytes.
final class ReplayDemo {

    private final Trace trace;
    private final Settings settings;
    private final Consumer<String> progress;
    private final PrefixForest forest;

    /// The settings of a run.
    ///
    /// @param capacities rows of the table, in blocks
    /// @param realBlocks capacity of the run with real bytes
    /// @param blockBytes real bytes of a block
    /// @param trace as `--trace` takes it
    record Settings(String trace, String traceTitle, List<Integer> capacities, int realBlocks, int blockBytes) {}

    /// @param progress is told what is going on
    ReplayDemo(Trace trace, Settings settings, Consumer<String> progress) {
        this.trace = trace;
        this.settings = settings;
        this.progress = progress;
        forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
    }

    /// Runs everything; takes some ten seconds.
    ///
    /// @throws IOException when the process with the disk tier fails
    DemoResult run() throws IOException {
        StoreReplayResult real = replayStore();
        double copy = MemoryCopySpeed.gigabytesPerSecond(settings.blockBytes());
        List<DemoResult.Row> rows = new ArrayList<>();
        for (int blocks : settings.capacities()) {
            progress.accept("LRU, importance and Belady's bound at " + blocks + " blocks");
            rows.add(new DemoResult.Row(
                    blocks,
                    replay(PolicyKind.LRU, blocks),
                    replay(PolicyKind.IMPORTANCE, blocks),
                    new BeladyReplay(true).run(forest, blocks, 0)));
        }
        return new DemoResult(
                settings.traceTitle(),
                trace.totals(),
                settings.blockBytes(),
                rows,
                replay(PolicyKind.LRU, forest.nodeCount()),
                settings.realBlocks(),
                real,
                replay(PolicyKind.LRU, settings.realBlocks()),
                replay(PolicyKind.IMPORTANCE, 2 * settings.realBlocks()),
                crashReplay(),
                coding(),
                copy);
    }

    private CodedDiskRounds.Round coding() {
        progress.accept("a slow disk with coded and with plain blocks");
        return CodedDiskRounds.measure(CodedDiskRounds.Scale.SMALL, 1).getFirst();
    }

    private CrashReplay crashReplay() throws IOException {
        progress.accept("a process with a disk tier, to be killed");
        Path folder = Files.createTempDirectory("kvcache-demo-");
        Path disk = folder.resolve("disk");
        try {
            return CrashReplay.of(disk, settings.trace(), forest);
        } finally {
            ScratchDirectory.deleteTier(disk);
            Files.delete(folder);
        }
    }

    private StoreReplayResult replayStore() {
        StoreReplay.Settings store =
                new StoreReplay.Settings(PolicyKind.IMPORTANCE, settings.realBlocks(), settings.blockBytes(), 0);
        return new StoreReplay(forest, store)
                .run(request -> progress.accept("real bytes: request " + request + " of " + forest.requestCount()));
    }

    private HitTotals replay(PolicyKind policy, int blocks) {
        return new PolicyReplay(policy).run(forest, Math.max(1, blocks), 0);
    }
}
