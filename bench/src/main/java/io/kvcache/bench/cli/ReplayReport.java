package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningRows.Figure;
import io.kvcache.bench.model.ModelProfile;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.trace.Trace;
import io.kvcache.server.cli.ByteSizeText;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/// Shows the outcomes of a replay.
final class ReplayReport {

    private static final String ROW = "%10s  %9s  %-13s  %10s  %10s  %8s  %11s  %10s  %8s";

    private final CommandIo io;
    private final PlanningRows rows;
    private final Optional<ModelProfile> model;
    private final int warmup;
    private String trace = "";
    private String rule = "";
    private int lastBlocks;
    private int blockTokens;

    /// @param model whose blocks the table shows the capacities in bytes of, if any
    /// @param warmup leading requests that do not count
    ReplayReport(CommandIo io, PlanningRows rows, Optional<ModelProfile> model, int warmup) {
        this.io = io;
        this.rows = rows;
        this.model = model;
        this.warmup = warmup;
    }

    /// Names of the fields that tell the rows of a trace apart.
    static final List<String> KEYS = List.of("rule", "blocks", "policy");

    /// What a table over several seeds shows.
    static final List<Figure> FIGURES = List.of(
            Figure.percent("block hits", "blockHitRatio"),
            Figure.percent("token hits", "tokenHitRatio"),
            Figure.percent("Belady", "beladyHitRatio"),
            Figure.percent("with bypass", "beladyBypassHitRatio"),
            Figure.percent("of the gap", "gapClosed"));

    /// One policy at one capacity. The fields' names are what programs rely on.
    ///
    /// @param warmupRequests that were replayed and not counted
    /// @param blocks capacity
    /// @param model whose KV the bytes are; empty without one
    /// @param bytes of that many blocks; null without a model
    /// @param gapClosed share of the way from LRU to Belady with bypass, 0 where there is none
    /// @param seconds that the replay took
    private record ReplayRow(
            String trace,
            String rule,
            int warmupRequests,
            String policy,
            int blocks,
            String model,
            @Nullable Long bytes,
            long blockAccesses,
            long blockHits,
            double blockHitRatio,
            double tokenHitRatio,
            double lruHitRatio,
            double beladyHitRatio,
            double beladyBypassHitRatio,
            double gapClosed,
            double seconds) {}

    /// The outcomes that follow are of this trace by this rule.
    void beginTrace(Trace traceOfAll, String sha256, BlockCountingRule ruleOfAll) {
        trace = traceOfAll.name();
        rule = ruleOfAll.commandName();
        lastBlocks = 0;
        blockTokens = traceOfAll.blockTokens();
        if (!rows.isText()) {
            return;
        }
        Trace.Totals totals = traceOfAll.totals();
        print(String.format(
                Locale.ROOT,
                "%s: %,d requests, %,d blocks of %d tokens, %,d distinct; rule: %s%s %s",
                trace,
                totals.requests(),
                totals.blockAccesses(),
                totals.blockTokens(),
                totals.distinctBlocks(),
                rule,
                model.map(size -> "; bytes of " + size.label()).orElse(""),
                PlanningRows.origin(sha256)));
        print(String.format(
                Locale.ROOT,
                ROW,
                "blocks",
                "bytes",
                "policy",
                "block hits",
                "token hits",
                "Belady",
                "with bypass",
                "of the gap",
                "seconds"));
    }

    /// One cache at one capacity.
    void addOutcome(ReplayComparison.Outcome outcome) {
        if (!rows.isText()) {
            rows.add(row(outcome));
            return;
        }
        boolean first = outcome.blocks() != lastBlocks;
        lastBlocks = outcome.blocks();
        print(String.format(
                Locale.ROOT,
                ROW,
                first ? String.format(Locale.ROOT, "%,d", outcome.blocks()) : "",
                first
                        ? model.map(size -> new ByteSizeText(bytes(size, outcome.blocks())).toString())
                                .orElse("-")
                        : "",
                outcome.replay().commandName(),
                PlanningRows.percent(outcome.totals().blockHitRatio()),
                PlanningRows.percent(outcome.totals().tokenHitRatio()),
                PlanningRows.percent(outcome.bounds().belady().blockHitRatio()),
                PlanningRows.percent(outcome.bounds().beladyBypass().blockHitRatio()),
                share(outcome.shareOfGap()),
                String.format(Locale.ROOT, "%.2f", outcome.seconds())));
    }

    private ReplayRow row(ReplayComparison.Outcome outcome) {
        return new ReplayRow(
                trace,
                rule,
                warmup,
                outcome.replay().commandName(),
                outcome.blocks(),
                model.map(ModelProfile::label).orElse(""),
                model.map(size -> bytes(size, outcome.blocks())).orElse(null),
                outcome.totals().blockAccesses(),
                outcome.totals().blockHits(),
                outcome.totals().blockHitRatio(),
                outcome.totals().tokenHitRatio(),
                outcome.bounds().lru().blockHitRatio(),
                outcome.bounds().belady().blockHitRatio(),
                outcome.bounds().beladyBypass().blockHitRatio(),
                outcome.shareOfGap().orElse(0),
                outcome.seconds());
    }

    /// No more outcomes of this trace and rule.
    void finish() {
        if (!rows.isText()) {
            return;
        }
        io.printText(
                "Belady knows the future. No policy can do better than with bypass; without it Belady has to admit every"
                        + " block, and a policy that may leave blocks out can do better.");
        io.printText("Of the gap: the way from LRU to Belady with bypass.");
        io.printText(
                "w-tinylfu, mooncake and lmcache-cost may keep a block without the blocks before it, which then cannot be a"
                        + " hit; pensieve's engine computes what is missing before it, so there it is one.");
        print("");
    }

    private long bytes(ModelProfile size, int blocks) {
        return size.kvBytesPerToken() * blockTokens * blocks;
    }

    private static String share(OptionalDouble share) {
        return share.isEmpty() ? "-" : String.format(Locale.ROOT, "%.0f %%", 100 * share.getAsDouble());
    }

    private void print(String line) {
        io.println(line.stripTrailing());
    }
}
