package io.kvcache.bench.cli;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.trace.Trace;
import java.io.PrintWriter;
import tools.jackson.databind.json.JsonMapper;

/// One JSON object a line, for programs.
final class ReplayJsonReport implements ReplayReport {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final PrintWriter out;
    private String trace = "";
    private String rule = "";

    ReplayJsonReport(PrintWriter out) {
        this.out = out;
    }

    /// The fields of a line. Their names are what programs rely on.
    record JsonLine(
            String trace,
            String policy,
            int blocks,
            double blockHitRatio,
            double tokenHitRatio,
            double beladyHitRatio,
            double beladyBypassHitRatio,
            double seconds,
            String rule) {}

    @Override
    public void beginTrace(Trace traceOfAll, BlockCountingRule ruleOfAll) {
        trace = traceOfAll.name();
        rule = ruleOfAll.commandName();
    }

    @Override
    public void addOutcome(ReplayComparison.Outcome outcome) {
        out.println(JSON.writeValueAsString(new JsonLine(
                trace,
                outcome.replay().commandName(),
                outcome.blocks(),
                outcome.totals().blockHitRatio(),
                outcome.totals().tokenHitRatio(),
                outcome.bounds().belady().blockHitRatio(),
                outcome.bounds().beladyBypass().blockHitRatio(),
                outcome.seconds(),
                rule)));
        out.flush();
    }

    @Override
    public void finish() {
        out.flush();
    }
}
