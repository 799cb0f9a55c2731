package io.kvcache.bench.cli;

import io.kvcache.bench.cli.DemoReport.DemoResult;
import io.kvcache.bench.crash.CrashReplay;
import io.kvcache.bench.disk.CodedDiskRounds;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.replay.BeladyReplay;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.StoreReplay;
import io.kvcache.planner.store.StoreReplay.StoreReplayResult;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.trace.Trace;
import io.kvcache.server.cli.TextWidth;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/// The demo's result on one screen.
@SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
final class DemoReport {

    private static final ModelPreset MODEL = ModelPreset.LLAMA_3_8B;

    /// Dense BF16 of an H100, and half of it used: what papers-grade prefill reaches.
    private static final double GPU_FLOPS = 989e12 * 0.5;

    /// Where the text of a line begins, below its word.
    private static final int HANGING = 9;

    private final CommandIo io;
    private final DemoResult result;

    DemoReport(CommandIo io, DemoResult result) {
        this.io = io;
        this.result = result;
    }

    /// The machine and the version, before anything has run.
    static String heading(String version, long hostBytes) {
        return format(
                "KVCache %s  JDK %d  %d cores  host %.1f GiB",
                version,
                Runtime.version().feature(),
                Runtime.getRuntime().availableProcessors(),
                (double) hostBytes / (1 << 30));
    }

    /// Prints the result.
    void print() {
        scale();
        table();
        findings();
    }

    /// GPU seconds that a prefill of these hits would have taken.
    static double gpuSeconds(HitTotals hits) {
        return MODEL.prefillFlopsOfPrefixes((double) hits.tokenHits(), hits.squaredTokenHits()) / GPU_FLOPS;
    }

    private void scale() {
        Trace.Totals totals = result.totals();
        line(
                "Trace    %s: %,d requests, %,d accesses of %d-token blocks",
                result.traceTitle(), totals.requests(), totals.blockAccesses(), totals.blockTokens());
        long modelBlock = MODEL.kvBytesPerToken() * totals.blockTokens();
        line(
                "Scale    blocks carry %s of real bytes; Llama-3-8B would need %s (1:%,d)",
                size(result.blockBytes()), size(modelBlock), modelBlock / result.blockBytes());
    }

    private void table() {
        line("Hits     share of the blocks that are found, and GPU seconds of prefill that this saves*");
        line("  blocks     would      LRU importance       of Belady's    LRU  importance");
        line("              take     hits       hits    LRU's    bound  GPU-s       GPU-s");
        for (DemoResult.Row row : result.rows()) {
            long bytes =
                    row.blocks() * MODEL.kvBytesPerToken() * result.totals().blockTokens();
            line(
                    "%,8d%10s%9s%11s%9.2f%9s%,7.0f%,12.0f",
                    row.blocks(),
                    size(bytes),
                    ratio(row.lru()),
                    ratio(row.importance()),
                    (double) row.importance().blockHits()
                            / Math.max(1, row.lru().blockHits()),
                    ratio(row.belady()),
                    gpuSeconds(row.lru()),
                    gpuSeconds(row.importance()));
        }
        HitTotals all = result.ceiling();
        line(
                "     all         -%9s%11s%9.2f%9s%,7.0f%,12.0f",
                ratio(all), ratio(all), 1.0, ratio(all), gpuSeconds(all), gpuSeconds(all));
    }

    private void findings() {
        StoreReplayResult real = result.real();
        StoreReplayResult.Check check = real.check();
        double speed = real.bytes().gigabytesPerSecond();
        line(
                "Bytes    %.1f GiB served at %.1f GB/s = %.0f %% of memory copy in this run; %.1f GiB stored (%,d blocks)",
                real.bytes().served() / (double) (1 << 30),
                speed,
                100 * speed / result.copyGigabytesPerSecond(),
                real.bytes().stored() / (double) (1 << 30),
                result.realBlocks());
        line(
                "Lookup   %,d ns per block (p50), %,d ns (p99)",
                real.lookupNanos().getValueAtPercentile(50), real.lookupNanos().getValueAtPercentile(99));
        line(
                "Correct  %,d of %,d returned blocks byte-equal, %,d wrong, %,d leaked",
                check.blocksServed() - check.wrongBlocks(), check.blocksServed(), check.wrongBlocks(), check.leaked());
        survival(result.survival());
        coding(result.coding());
        HitTotals lru = result.lruOfRealBlocks();
        line(
                "Meaning  at %,d blocks, %.1f %% of the prompts' tokens need no prefill; with LRU it would be %.1f %%."
                        + " Doubling the memory would add %.1f points",
                result.realBlocks(),
                100 * real.totals().tokenHitRatio(),
                100 * lru.tokenHitRatio(),
                result.doublingGainPoints());
        line("* estimate: H100 at 50 %% MFU, not measured here. Next: ./kvcache help");
    }

    private void survival(CrashReplay crashReplay) {
        line(
                "Disk     process killed -9 while it wrote; reopened in %,.0f ms, %,d of %,d flushed blocks present,"
                        + " %,d wrong",
                1e3 * crashReplay.reopenSeconds(),
                crashReplay.presentBlocks(),
                crashReplay.promisedBlocks(),
                crashReplay.wrongBlocks());
        line(
                "         it had written %.0f %% of the bytes that write-through writes: blocks go to disk when used"
                        + " again",
                100 * crashReplay.writtenShare());
    }

    private void coding(CodedDiskRounds.Round round) {
        line(
                "Coding   bf16 blocks take %.0f %% of their bytes on disk; a disk of 300 MB/s brings %.2f times as many",
                100 * round.storedShare(), round.onboardCoded() / round.onboardPlain());
    }

    private void line(String format, Object... values) {
        io.println(TextWidth.wrap(format(format, values), HANGING, io.columns()));
    }

    private static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }

    private static String ratio(HitTotals totals) {
        return CommandIo.percent(totals.blockHitRatio());
    }

    private static String size(long bytes) {
        if (bytes >= 1L << 30) {
            return format("%,.0f GiB", bytes / (double) (1L << 30));
        }
        return bytes >= 1 << 20 ? bytes / (1 << 20) + " MiB" : bytes / (1 << 10) + " KiB";
    }

    /// The result as one object. The names are what programs rely on.
    static Map<String, Object> toJson(DemoResult result) {
        StoreReplayResult real = result.real();
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("trace", result.traceTitle());
        json.put("requests", result.totals().requests());
        json.put("blockAccesses", result.totals().blockAccesses());
        json.put("blockBytes", result.blockBytes());
        json.put("rows", result.rows().stream().map(DemoReport::toJson).toList());
        json.put("ceilingBlockHitRatio", result.ceiling().blockHitRatio());
        json.put("realBlocks", result.realBlocks());
        json.put("bytesServed", real.bytes().served());
        json.put("gigabytesPerSecond", real.bytes().gigabytesPerSecond());
        json.put("copyGigabytesPerSecond", result.copyGigabytesPerSecond());
        json.put("lookupNanosP50", real.lookupNanos().getValueAtPercentile(50));
        json.put("lookupNanosP99", real.lookupNanos().getValueAtPercentile(99));
        json.put("blocksServed", real.check().blocksServed());
        json.put("wrongBlocks", real.check().wrongBlocks());
        json.put("leaked", real.check().leaked());
        json.put("tokenHitRatio", real.totals().tokenHitRatio());
        json.put("doublingAddsPoints", result.doublingGainPoints());
        json.put("reopenSeconds", result.survival().reopenSeconds());
        json.put("flushedBlocks", result.survival().promisedBlocks());
        json.put("flushedBlocksPresent", result.survival().presentBlocks());
        json.put("flushedBlocksWrong", result.survival().wrongBlocks());
        json.put("writtenShare", result.survival().writtenShare());
        return json;
    }

    private static Map<String, Object> toJson(DemoResult.Row row) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("blocks", row.blocks());
        json.put("lru", row.lru().blockHitRatio());
        json.put("importance", row.importance().blockHitRatio());
        json.put("belady", row.belady().blockHitRatio());
        json.put("lruTokens", row.lru().tokenHitRatio());
        json.put("importanceTokens", row.importance().tokenHitRatio());
        return json;
    }

    /// The results of the demo.
    ///
    /// @param traceTitle where the requests come from, for people
    /// @param blockBytes real bytes of a block in the store
    /// @param rows one for each capacity
    /// @param ceiling hits of an unlimited cache
    /// @param realBlocks capacity of the run with real bytes
    /// @param real that run, by the default policy
    /// @param lruOfRealBlocks hits of LRU at that capacity
    /// @param doubled hits of the default policy at twice that capacity
    /// @param survival of a process with a disk tier that was killed
    /// @param coding of bf16 blocks on a disk of 300 MB/s
    /// @param copyGigabytesPerSecond memory copy of the same block size in this run
    record DemoResult(
            String traceTitle,
            Trace.Totals totals,
            int blockBytes,
            List<Row> rows,
            HitTotals ceiling,
            int realBlocks,
            StoreReplayResult real,
            HitTotals lruOfRealBlocks,
            HitTotals doubled,
            CrashReplay survival,
            CodedDiskRounds.Round coding,
            double copyGigabytesPerSecond) {

        /// Copies the rows.
        DemoResult {
            rows = List.copyOf(rows);
        }

        /// One capacity.
        record Row(int blocks, HitTotals lru, HitTotals importance, HitTotals belady) {}

        /// Returns whether no byte was wrong and no promise was broken.
        boolean passed() {
            return real.check().passed() && survival.passed();
        }

        /// Percentage points that doubling the memory would add to the tokens reused.
        double doublingGainPoints() {
            return 100 * (doubled.tokenHitRatio() - real.totals().tokenHitRatio());
        }
    }

    /// Replays one trace at several capacities by metadata, and at one of them through the real store with
    /// real bytes.
    static final class ReplayDemo {

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
            double copy = StoreReplay.copyGigabytesPerSecond(settings.blockBytes());
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
                TierReplay.deleteTier(disk);
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
}
