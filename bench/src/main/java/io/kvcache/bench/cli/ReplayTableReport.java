package io.kvcache.bench.cli;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.trace.Trace;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.server.cli.ByteSizeText;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/// An aligned table for people.
final class ReplayTableReport implements ReplayReport {

    private static final String ROW = "%10s  %9s  %-13s  %10s  %10s  %8s  %11s  %10s  %8s";

    private final PrintWriter out;
    private final Optional<ModelPreset> model;
    private int lastBlocks;
    private int blockTokens;

    /// @param model whose blocks the capacities are shown in bytes of, if any
    ReplayTableReport(PrintWriter out, Optional<ModelPreset> model) {
        this.out = out;
        this.model = model;
    }

    @Override
    public void beginTrace(Trace trace, BlockCountingRule rule) {
        Trace.Totals totals = trace.totals();
        blockTokens = totals.blockTokens();
        print(String.format(
                Locale.ROOT,
                "%s: %,d requests, %,d blocks of %d tokens, %,d distinct; rule: %s%s",
                trace.name(),
                totals.requests(),
                totals.blockAccesses(),
                totals.blockTokens(),
                totals.distinctBlocks(),
                rule.commandName(),
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
        lastBlocks = 0;
    }

    @Override
    public void addOutcome(ReplayComparison.Outcome outcome) {
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

    @Override
    public void finish() {
        print("Belady knows the future. No policy can do better than with bypass; without it Belady has to admit every"
                + " block, and a policy that may leave blocks out can do better.");
        print("Of the gap: the way from LRU to Belady with bypass.");
        print(
                "w-tinylfu, mooncake and lmcache-cost may keep a block without the blocks before it, which then cannot be a"
                        + " hit; pensieve's engine computes what is missing before it, so there it is one.");
        print("");
    }

    private String bytes(ModelPreset size, int blocks) {
        return new ByteSizeText(size.kvBytesPerToken() * blockTokens * blocks).toString();
    }

    private static String share(OptionalDouble share) {
        return share.isEmpty() ? "-" : String.format(Locale.ROOT, "%.0f %%", 100 * share.getAsDouble());
    }

    private static String percent(double ratio) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * ratio);
    }

    private void print(String line) {
        out.println(line.stripTrailing());
        out.flush();
    }
}
