package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningOptions.CapacitySharesOption;
import io.kvcache.bench.cli.PlanningOptions.EngineOptions;
import io.kvcache.bench.cli.PlanningOptions.HitCountingOptions;
import io.kvcache.bench.cli.PlanningOptions.HtmlReportOption;
import io.kvcache.bench.cli.PlanningOptions.PolicyOptions;
import io.kvcache.bench.cli.PlanningOptions.TraceListOption;
import io.kvcache.bench.cli.PlanningOptions.TraceOption;
import io.kvcache.bench.lab.LabRow;
import io.kvcache.bench.lab.ParameterSweep;
import io.kvcache.bench.lab.PolicyComparison;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.SimulatedCache;
import io.kvcache.bench.report.LabHtmlReport;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache lab`: all policies over capacities that are shares of a trace's distinct blocks, with hints
/// and other constants.
@Command(
        name = "lab",
        description = "Compare policies over traces and capacities: hit ratios, the share of the gap from LRU to Belady"
                + " that each closes, and what that does to an engine: prefill time saved, the same less the time of"
                + " moving (net), time to the first token; and how full the cache was.",
        mixinStandardHelpOptions = true,
        subcommands = {TierLabCommand.class, StateLabCommand.class, CurveLabCommand.class, CaptureLabCommand.class},
        sortOptions = false)
final class LabCommand implements Callable<Integer> {

    @Mixin
    private final CommandIo io = new CommandIo();

    @Mixin
    private final HitCountingOptions counted = new HitCountingOptions();

    @Mixin
    private final TraceListOption traces = new TraceListOption();

    @Mixin
    private final CapacitySharesOption shares = new CapacitySharesOption();

    @Mixin
    private final PolicyOptions policies = new PolicyOptions();

    @Option(
            names = "--look-ahead",
            paramLabel = "N",
            split = ",",
            description = "Also importance that knows the next N requests, as a server knows its waiting ones.")
    private List<Integer> lookAheads = new ArrayList<>();

    @Option(
            names = "--one-per-session",
            description = "With --look-ahead, once more as where clients wait for their answers: the known requests end"
                    + " before the first whose session has one that is not served yet.")
    private boolean onePerSession;

    @Option(names = "--sensitivity", description = "Also importance with each of its constants halved and doubled.")
    private boolean sensitivity;

    @Option(
            names = "--format",
            paramLabel = "text|json|csv",
            defaultValue = "text",
            description = "A table, one JSON object a line, or comma-separated values. Default: ${DEFAULT-VALUE}.")
    private String format = "";

    @Mixin
    private final EngineOptions engine = new EngineOptions();

    @Mixin
    private final HtmlReportOption html = new HtmlReportOption();

    @Override
    public Integer call() throws IOException {
        List<SimulatedCache> caches = caches();
        List<Double> capacities = shares.shares();
        engine.printRemarks(io.err());
        LabReport report = new LabReport(io, format, !lookAheads.isEmpty());
        LabHtmlReport page = new LabHtmlReport("./kvcache " + io.arguments());
        try (ProgressLine progressLine = new ProgressLine(io.err())) {
            for (TraceSource source : traces.traceSources()) {
                Trace trace = loaded(source);
                report.beginTrace(trace);
                page.beginTrace(trace);
                new PolicyComparison(trace, engine.hardware(), counted.rule(), counted.warmup())
                        .run(caches, capacities, row -> {
                            page.addRow(row);
                            show(row, report, progressLine);
                        });
            }
        }
        report.finish();
        html.write(page::toHtmlReport);
        return 0;
    }

    private Trace loaded(TraceSource source) throws IOException {
        Trace trace = TraceOption.loadTrace(source, io.err());
        try {
            PlanningOptions.checkWarmup(counted.warmup(), trace);
        } catch (IllegalArgumentException e) {
            throw io.usageError(e);
        }
        return trace;
    }

    private static void show(LabRow row, LabReport report, ProgressLine progressLine) {
        progressLine.close();
        report.addRow(row);
        progressLine.update("replaying " + row.trace() + " at " + row.blocks() + " blocks");
    }

    private List<SimulatedCache> caches() {
        return io.check(() -> {
            List<SimulatedCache> caches = new ArrayList<>(policies.replays(List.of()));
            for (int lookAhead : lookAheads) {
                if (lookAhead < 1) {
                    throw PlanningOptions.invalidOption("--look-ahead", String.valueOf(lookAhead), "at least 1");
                }
                caches.add(new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead));
                if (onePerSession) {
                    caches.add(new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead, true));
                }
            }
            if (onePerSession && lookAheads.isEmpty()) {
                throw new IllegalArgumentException("--one-per-session restricts --look-ahead N, which is not given");
            }
            if (sensitivity) {
                caches.addAll(ParameterSweep.variants(0));
            }
            counted.warmup();
            PlanningOptions.checkFormat(format);
            html.checkWritable();
            engine.hardware();
            counted.rule();
            shares.shares();
            traces.traceSources();
            return caches;
        });
    }

    /// Shows the rows of the laboratory: a table, one JSON object a line, or comma-separated values.
    private static final class LabReport {

        private final CommandIo io;
        private final String format;
        private final boolean looksAhead;
        private boolean begun;
        private int lastBlocks;

        /// @param looksAhead whether there are rows of policies that know the next requests
        LabReport(CommandIo io, String format, boolean looksAhead) {
            this.io = io;
            this.format = format;
            this.looksAhead = looksAhead;
        }

        /// The rows that follow are of this trace.
        void beginTrace(Trace trace) {
            if (format.equals("csv") && !begun) {
                io.println(LabRow.CSV_HEAD);
            } else if (format.equals("text")) {
                printHead(trace);
            }
            begun = true;
        }

        private void printHead(Trace trace) {
            Trace.Totals totals = trace.totals();
            io.println(String.format(
                    Locale.ROOT,
                    "%s: %,d requests, %,d blocks, %,d distinct",
                    trace.name(),
                    totals.requests(),
                    totals.blockAccesses(),
                    totals.distinctBlocks()));
            if (!trace.hasTimestamps()) {
                io.println("  " + PlanningOptions.NO_TIMESTAMPS_NOTE);
            }
            io.println(
                    "  share    blocks  policy                          block hits  token hits      bound  of the gap"
                            + "    saved   moving      net    first token p50      p99  taken declined");
            lastBlocks = 0;
        }

        /// One cache at one capacity.
        void addRow(LabRow row) {
            switch (format) {
                case "json" -> io.printJson(row);
                case "csv" -> io.println(row.csv());
                default -> io.println(text(row));
            }
        }

        private String text(LabRow row) {
            boolean first = row.blocks() != lastBlocks;
            lastBlocks = row.blocks();
            return String.format(
                    Locale.ROOT,
                    "%6s %9s  %-30s  %8.2f %%  %8.2f %%  %7.2f %%  %8.0f %% %,6.0f s %,6.0f s %,6.0f s %16.2f s %6.1f s %4.0f %% %6.0f %%",
                    first ? String.format(Locale.ROOT, "%.1f %%", 100 * row.share()) : "",
                    first ? String.format(Locale.ROOT, "%,d", row.blocks()) : "",
                    row.policy(),
                    100 * row.blockHitRatio(),
                    100 * row.tokenHitRatio(),
                    100 * row.beladyHitRatio(),
                    100 * row.gapClosed(),
                    row.prefillSecondsSaved(),
                    row.loadSeconds(),
                    row.savedLessLoadingSeconds(),
                    row.ttftP50Seconds(),
                    row.ttftP99Seconds(),
                    100 * row.occupancy(),
                    100 * row.declinedShare());
        }

        /// No more rows.
        void finish() {
            if (format.equals("text")) {
                io.println(
                        "bound: Belady's rule with bypass (belady-bypass), which knows the future and may leave blocks"
                                + " out. belady has to take every block, so a policy that declines some can be above it.");
                io.println("of the gap: the way from LRU to the bound. taken: how full the cache was, the mean over the"
                        + " requests. declined: of the blocks that could have been put, as the store's policies say; a block"
                        + " that comes again and is declined again counts again.");
                if (looksAhead) {
                    io.println(
                            "+N: the policy knows the next N requests (--look-ahead). +Ns: that queue ends before the first"
                                    + " request whose session has another one that is not served yet (--one-per-session).");
                }
            }
        }
    }
}
