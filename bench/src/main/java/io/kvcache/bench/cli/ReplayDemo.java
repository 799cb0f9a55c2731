package io.kvcache.bench.cli;

import io.kvcache.bench.cli.DemoReport.DemoResult;
import io.kvcache.bench.crash.CrashReplay;
import io.kvcache.bench.disk.CodedDiskRounds;
import io.kvcache.bench.replay.BeladyReplay;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.HitCounter.HitTotals;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.store.MemoryCopySpeed;
import io.kvcache.bench.store.ScratchDirectory;
import io.kvcache.bench.store.StoreReplay;
import io.kvcache.bench.store.StoreReplay.StoreReplayResult;
import io.kvcache.bench.trace.Trace;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
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
        List<Candidate> candidates =
                EvictionPolicies.all().stream().map(this::replayAtAllCapacities).toList();
        Candidate lru = candidates.getFirst();
        Candidate best = candidates.stream()
                .filter(each -> !each.kind.equals(PolicyKind.LRU))
                .max(Comparator.comparingLong(Candidate::hits))
                .orElse(lru);
        List<DemoResult.Row> rows = new ArrayList<>();
        for (int i = 0; i < settings.capacities().size(); i++) {
            int blocks = settings.capacities().get(i);
            progress.accept("Belady's bound at " + blocks + " blocks");
            HitTotals belady = new BeladyReplay(true).run(forest, blocks, 0);
            rows.add(new DemoResult.Row(blocks, lru.totals.get(i), best.totals.get(i), belady));
        }
        return new DemoResult(
                settings.traceTitle(),
                trace.totals(),
                settings.blockBytes(),
                best.kind.commandName(),
                rows,
                lru(forest.nodeCount()),
                settings.realBlocks(),
                real,
                lru(2 * settings.realBlocks()),
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
                new StoreReplay.Settings(PolicyKind.LRU, settings.realBlocks(), settings.blockBytes(), 0);
        return new StoreReplay(forest, store)
                .run(request -> progress.accept("real bytes: request " + request + " of " + forest.requestCount()));
    }

    private Candidate replayAtAllCapacities(EvictionPolicyFactory kind) {
        List<HitTotals> totals = new ArrayList<>();
        for (int blocks : settings.capacities()) {
            progress.accept(kind.title() + " at " + blocks + " blocks");
            totals.add(new PolicyReplay(kind).run(forest, blocks, 0));
        }
        return new Candidate(kind, totals);
    }

    private HitTotals lru(int blocks) {
        return new PolicyReplay(PolicyKind.LRU).run(forest, Math.max(1, blocks), 0);
    }

    /// One policy at all capacities; LRU is the first kind there is.
    private record Candidate(EvictionPolicyFactory kind, List<HitTotals> totals) {
        long hits() {
            return totals.stream().mapToLong(HitTotals::blockHits).sum();
        }
    }
}
