package io.kvcache.bench.cli;

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
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

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
            CurveLabCommand.class,
            CaptureLabCommand.class
        },
        sortOptions = false)
final class LabCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

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
            description = "Also importance that is told of the next N requests, as a server knows those that wait.")
    private List<Integer> lookAheads = new ArrayList<>();

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
        LabReportFormat report =
                LabReportFormat.forFormat(format, spec.commandLine().getOut());
        LabHtmlReport page = new LabHtmlReport(HtmlReportOption.commandLine(spec));
        try (ProgressLine progressLine = new ProgressLine(spec.commandLine().getErr())) {
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
        Trace trace = TraceOption.loadTrace(source, spec.commandLine().getErr());
        try {
            ReplayOptions.checkWarmup(counted.warmup(), trace);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab: " + e.getMessage(), e);
        }
        return trace;
    }

    private static void show(LabRow row, LabReportFormat report, ProgressLine progressLine) {
        progressLine.close();
        report.addRow(row);
        progressLine.update("replaying " + row.trace() + " at " + row.blocks() + " blocks");
    }

    private List<SimulatedCache> caches() {
        try {
            List<SimulatedCache> caches = new ArrayList<>(policies.replays(List.of()));
            for (int lookAhead : lookAheads) {
                if (lookAhead < 1) {
                    throw ReplayOptions.invalidOption("--look-ahead", String.valueOf(lookAhead), "at least 1");
                }
                caches.add(new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead));
            }
            if (sensitivity) {
                caches.addAll(ParameterSweep.variants(0));
            }
            counted.warmup();
            LabReportFormat.checkFormat(format);
            html.checkWritable();
            engine.hardware();
            counted.rule();
            shares.shares();
            traces.traceSources();
            return caches;
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab: " + e.getMessage(), e);
        }
    }
}
