package io.kvcache.planner.cli;

import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.HitCountingOptions;
import io.kvcache.planner.cli.PlanningOptions.ModelOption;
import io.kvcache.planner.cli.PlanningOptions.SeedsOption;
import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.lab.HitRatioCurves;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache lab curve`: LRU's hit ratio over capacity from one pass over a trace.
@Command(
        name = "curve",
        description = "Draw LRU's hit ratio over capacity from one pass over a trace, or from a sample of its blocks"
                + " with a bound of the error.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class CurveLabCommand implements Callable<Integer> {

    private static final List<Column> COLUMNS = List.of(
            Column.key("share"),
            Column.key("blocks"),
            Column.key("exact"),
            Column.percent("block hits", "blockHitRatio"),
            Column.percent("at least", "low"),
            Column.percent("at most", "high"),
            Column.bytes("bytes", "bytes"));

    @Mixin
    private final CommandIo io = new CommandIo();

    @Mixin
    private final HitCountingOptions counted = new HitCountingOptions();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final ModelOption model = new ModelOption();

    @Option(
            names = "--share",
            paramLabel = "PERCENT",
            split = ",",
            defaultValue = "0.2,0.5,1,2,3,5,7,10,15,20,30,50,100",
            description = "Capacities in percent of the trace's distinct blocks. Default: ${DEFAULT-VALUE}.")
    private List<String> percents = new ArrayList<>();

    @Option(
            names = "--sample",
            paramLabel = "PERCENT",
            defaultValue = "100",
            description = "Sample this share of the blocks, and print the error bound. Default: all.")
    private String sample = "";

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Seed that selects the sampled blocks. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Mixin
    private final FormatOption format = new FormatOption();

    @Mixin
    private final SeedsOption seeds = new SeedsOption();

    private record CurveOptions(
            List<TraceSource> sources,
            ModelProfile model,
            BlockCountingRule rule,
            int warmup,
            List<Double> shares,
            double sampleShare,
            OutputFormat format) {}

    @Override
    public Integer call() throws IOException {
        CurveOptions curveOptions = curveOptions();
        model.printRemarks(io.err());
        PlanningRows rows =
                new PlanningRows(io, new RowPrinter(io, curveOptions.format), curveOptions.sources, COLUMNS);
        rows.forEachTrace((trace, _, _) -> {
            try {
                PlanningOptions.checkWarmup(curveOptions.warmup, trace);
                HitRatioCurves laboratory = new HitRatioCurves(
                        trace, curveOptions.model.kvBytesPerToken(), curveOptions.rule, curveOptions.warmup);
                show(rows(laboratory, curveOptions), curveOptions, rows);
            } catch (IllegalArgumentException e) {
                throw io.usageError(e);
            }
        });
        return 0;
    }

    private List<ResultRow> rows(HitRatioCurves laboratory, CurveOptions curveOptions) {
        if (curveOptions.sampleShare == 1) {
            return laboratory.exact(curveOptions.shares);
        }
        List<ResultRow> rows = laboratory.sampled(curveOptions.shares, curveOptions.sampleShare, seed);
        if (rows.getFirst().number("sampledBlocks") == 0) {
            throw PlanningOptions.invalidOption(
                    "--sample", sample, "more: it looks at none of the blocks, so nothing is known");
        }
        return rows;
    }

    private static void show(List<ResultRow> rows, CurveOptions curveOptions, PlanningRows output) {
        ResultRow first = rows.getFirst();
        output.head(
                "%s: LRU, rule %s, %,d blocks looked at; bytes of %s",
                first.text("trace"), first.text("rule"), first.count("sampledBlocks"), curveOptions.model.label());
        rows.forEach(row ->
                output.add(row.put("model", curveOptions.model.label()).put("warmupRequests", curveOptions.warmup)));
    }

    private CurveOptions curveOptions() {
        return io.check(() -> {
            return new CurveOptions(
                    seeds.sources(trace.traceSource()),
                    model.profile(),
                    counted.rule(),
                    counted.warmup(),
                    percents.stream()
                            .map(percent -> PlanningOptions.parseShare("--share", percent))
                            .toList(),
                    PlanningOptions.parseShare("--sample", sample),
                    format.format());
        });
    }
}
