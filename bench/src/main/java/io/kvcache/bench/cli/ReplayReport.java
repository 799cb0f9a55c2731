package io.kvcache.bench.cli;

import io.kvcache.bench.model.ModelProfile;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.trace.Trace;
import io.kvcache.server.cli.ByteSizeText;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/// Shows the outcomes of a replay: an aligned table, or one JSON object a line.
final class ReplayReport {

    private static final String ROW = "%10s  %9s  %-13s  %10s  %10s  %8s  %11s  %10s  %8s";

    private final CommandIo io;
    private final boolean json;
    private final Optional<ModelProfile> model;
    private String trace = "";
    private String rule = "";
    private int lastBlocks;
    private int blockTokens;

    /// @param model whose blocks the table shows the capacities in bytes of, if any
    ReplayReport(CommandIo io, boolean json, Optional<ModelProfile> model) {
        this.io = io;
        this.json = json;
        this.model = model;
    }

    /// The fields of a line. Their names are what programs rely on.
    private record JsonLine(
            String trace,
            String policy,
            int blocks,
            double blockHitRatio,
            double tokenHitRatio,
            double beladyHitRatio,
            double beladyBypassHitRatio,
            double seconds,
            String rule) {}

    /// The outcomes that follow are of this trace by this rule.
    void beginTrace(Trace traceOfAll, BlockCountingRule ruleOfAll) {
        trace = traceOfAll.name();
        rule = ruleOfAll.commandName();
        lastBlocks = 0;
        if (json) {
            return;
        }
        Trace.Totals totals = traceOfAll.totals();
        blockTokens = totals.blockTokens();
        print(String.format(
                Locale.ROOT,
                "%s: %,d requests, %,d blocks of %d tokens, %,d distinct; rule: %s%s",
                trace,
                totals.requests(),
                totals.blockAccesses(),
                totals.blockTokens(),
                totals.distinctBlocks(),
                rule,
                model.map(size -> "; bytes of " + size.label()).orElse("")));
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
        if (json) {
            io.printJson(new JsonLine(
                    trace,
                    outcome.replay().commandName(),
                    outcome.blocks(),
                    outcome.totals().blockHitRatio(),
                    outcome.totals().tokenHitRatio(),
                    outcome.bounds().belady().blockHitRatio(),
                    outcome.bounds().beladyBypass().blockHitRatio(),
                    outcome.seconds(),
                    rule));
            return;
        }
        boolean first = outcome.blocks() != lastBlocks;
        lastBlocks = outcome.blocks();
        print(String.format(
                Locale.ROOT,
                ROW,
                first ? String.format(Locale.ROOT, "%,d", outcome.blocks()) : "",
                first ? model.map(size -> bytes(size, outcome.blocks())).orElse("-") : "",
                outcome.replay().commandName(),
                percent(outcome.totals().blockHitRatio()),
                percent(outcome.totals().tokenHitRatio()),
                percent(outcome.bounds().belady().blockHitRatio()),
                percent(outcome.bounds().beladyBypass().blockHitRatio()),
                share(outcome.shareOfGap()),
                String.format(Locale.ROOT, "%.2f", outcome.seconds())));
    }

    /// No more outcomes of this trace and rule.
    void finish() {
        if (json) {
            return;
        }
        print("Belady knows the future. No policy can do better than with bypass; without it Belady has to admit every"
                + " block, and a policy that may leave blocks out can do better.");
        print("Of the gap: the way from LRU to Belady with bypass.");
        print(
                "w-tinylfu, mooncake and lmcache-cost may keep a block without the blocks before it, which then cannot be a"
                        + " hit; pensieve's engine computes what is missing before it, so there it is one.");
        print("");
    }

    private String bytes(ModelProfile size, int blocks) {
        return new ByteSizeText(size.kvBytesPerToken() * blockTokens * blocks).toString();
    }

    private static String share(OptionalDouble share) {
        return share.isEmpty() ? "-" : String.format(Locale.ROOT, "%.0f %%", 100 * share.getAsDouble());
    }

    private static String percent(double ratio) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * ratio);
    }

    private void print(String line) {
        io.println(line.stripTrailing());
    }
}
