package io.kvcache.bench.cli;

import io.kvcache.bench.lab.LabRow;
import io.kvcache.bench.lab.Laboratory;
import io.kvcache.bench.lab.Sensitivity;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.Replay;
import io.kvcache.bench.report.LabPage;
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
            PrefetchLabCommand.class,
            MarginLabCommand.class,
            ConstantLabCommand.class,
            CaptureLabCommand.class
        },
        sortOptions = false)
final class LabCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final CountOptions counted = new CountOptions();

    @Mixin
    private final TracesOption traces = new TracesOption();

    @Mixin
    private final SharesOption shares = new SharesOption();

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            split = ",",
            description = "Policies, separated by commas. Default: all that there are.")
    private List<String> policies = new ArrayList<>();

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
    private final EngineOption engine = new EngineOption();

    @Mixin
    private final HtmlOption html = new HtmlOption();

    @Override
    public Integer call() throws IOException {
        List<Replay> caches = caches();
        List<Double> capacities = shares.all();
        LabReport report = LabReport.named(format, spec.commandLine().getOut());
        LabPage page = new LabPage(HtmlOption.command(spec));
        try (ProgressLine progress = new ProgressLine(spec.commandLine().getErr())) {
            for (TraceSource source : traces.sources()) {
                Trace trace = loaded(source);
                report.begin(trace);
                page.begin(trace);
                new Laboratory(trace, engine.hardware(), counted.rule(), counted.warmup())
                        .run(caches, capacities, row -> {
                            page.add(row);
                            show(row, report, progress);
                        });
            }
        }
        report.end();
        html.write(page::page);
        return 0;
    }

    private Trace loaded(TraceSource source) throws IOException {
        Trace trace = TraceOption.load(source, spec.commandLine().getErr());
        try {
            ReplayChoices.checkWarmup(counted.warmup(), trace);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab: " + e.getMessage(), e);
        }
        return trace;
    }

    private static void show(LabRow row, LabReport report, ProgressLine progress) {
        progress.close();
        report.add(row);
        progress.update("replaying " + row.trace() + " at " + row.blocks() + " blocks");
    }

    private List<Replay> caches() {
        try {
            List<Replay> caches = new ArrayList<>(ReplayChoices.replays(policies));
            for (int lookAhead : lookAheads) {
                if (lookAhead < 1) {
                    throw ReplayChoices.mustBe("--look-ahead", String.valueOf(lookAhead), "at least 1");
                }
                caches.add(new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead));
            }
            if (sensitivity) {
                caches.addAll(Sensitivity.variants(0));
            }
            counted.warmup();
            LabReport.check(format);
            html.check();
            engine.hardware();
            counted.rule();
            shares.all();
            traces.sources();
            return caches;
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab: " + e.getMessage(), e);
        }
    }
}
