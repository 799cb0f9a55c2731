package io.kvcache.planner.cli;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.cli.PlanningOptions.CapacitySharesOption;
import io.kvcache.planner.cli.PlanningOptions.EngineOptions;
import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.HitCountingOptions;
import io.kvcache.planner.cli.PlanningOptions.HtmlReportOption;
import io.kvcache.planner.cli.PlanningOptions.PolicyOptions;
import io.kvcache.planner.cli.PlanningOptions.SeedsOption;
import io.kvcache.planner.cli.PlanningOptions.TraceListOption;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.lab.PolicyComparison;
import io.kvcache.planner.replay.ImportanceReplay;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.LabHtmlReport;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
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
        subcommands = {
            TierLabCommand.class,
            StateLabCommand.class,
            CurveLabCommand.class,
            CaptureLabCommand.class,
            CalibrateLabCommand.class,
            CheckLabCommand.class
        },
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

    @Mixin
    private final FormatOption format = new FormatOption();

    @Mixin
    private final SeedsOption seeds = new SeedsOption();

    @Mixin
    private final EngineOptions engine = new EngineOptions();

    @Mixin
    private final HtmlReportOption html = new HtmlReportOption();

    @Override
    public Integer call() throws IOException {
        List<SimulatedCache> caches = caches();
        List<Double> capacities = shares.shares();
        engine.printRemarks(io.err());
        RowPrinter printer = new RowPrinter(io, format.format());
        LabHtmlReport page = new LabHtmlReport();
        for (TraceSource named : traces.traceSources()) {
            PlanningRows rows = new PlanningRows(io, printer, seeds.sources(named), LabHtmlReport.COLUMNS);
            rows.forEachTrace((trace, sha256, progressLine) -> {
                requireCounted(trace);
                page.beginTrace(trace, sha256);
                engine.printRemarks(trace, io.err());
                head(rows, trace);
                new PolicyComparison(trace, engine.hardware(), counted.rule(), counted.warmup())
                        .run(caches, capacities, row -> {
                            page.addRow(row);
                            show(row, rows, progressLine);
                        });
            });
        }
        explain();
        html.write(() -> page.toHtmlReport(html.origin(io)));
        return 0;
    }

    private void requireCounted(Trace trace) {
        try {
            PlanningOptions.checkWarmup(counted.warmup(), trace);
        } catch (IllegalArgumentException e) {
            throw io.usageError(e);
        }
    }

    private void show(ResultRow row, PlanningRows rows, ProgressLine progressLine) {
        progressLine.close();
        rows.add(row.put("engine", engine.title()).put("warmupRequests", counted.warmup()));
        progressLine.update(
                "replaying " + row.text("trace") + " at " + row.values().get("blocks") + " blocks");
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
                caches.addAll(ImportanceReplay.variants(0));
            }
            counted.warmup();
            format.format();
            html.checkWritable();
            engine.hardware();
            counted.rule();
            shares.shares();
            traces.traceSources().forEach(seeds::sources);
            seeds.checkWithout("--html", html.isGiven());
            return caches;
        });
    }

    private static void head(PlanningRows rows, Trace trace) {
        Trace.Totals totals = trace.totals();
        rows.head(
                "%s: %,d requests, %,d blocks, %,d distinct",
                trace.name(), totals.requests(), totals.blockAccesses(), totals.distinctBlocks());
        if (!trace.hasTimestamps()) {
            rows.note("  " + PlanningOptions.NO_TIMESTAMPS_NOTE);
        }
    }

    private void explain() {
        if (format.format() != OutputFormat.TEXT || seeds.isGiven()) {
            return;
        }
        io.printText("bound: Belady's rule with bypass (belady-bypass), which knows the future and may leave blocks"
                + " out. belady has to take every block, so a policy that declines some can be above it.");
        io.printText("of the gap: the way from LRU to the bound. taken: how full the cache was, the mean over the"
                + " requests. declined: of the blocks that could have been put, as the store's policies say; a block"
                + " that comes again and is declined again counts again.");
        if (!lookAheads.isEmpty()) {
            io.printText(
                    "+N: the policy knows the next N requests (--look-ahead). +Ns: that queue ends before the first"
                            + " request whose session has another one that is not served yet (--one-per-session).");
        }
    }
}
