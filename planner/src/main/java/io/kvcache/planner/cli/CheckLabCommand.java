package io.kvcache.planner.cli;

import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.TraceListOption;
import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.ReplayCatalogue;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.serving.EngineCalibration;
import io.kvcache.planner.serving.HttpCompletionServer;
import io.kvcache.planner.serving.PredictionCheck;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `kvcache lab check`: a prediction beside what the server then does.
@Command(
        name = "check",
        description = "Predict the times to the first token of a scaled trace from a calibration, send the trace to the"
                + " server, and print both.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class CheckLabCommand implements Callable<Integer> {

    private static final double MAX_LOAD = 10;
    private static final double MAX_HIT_DIFFERENCE = 0.02;

    @Mixin
    private final CommandIo io = new CommandIo();

    @Parameters(paramLabel = "URL", description = "The server: http://HOST:PORT, idle but for this.")
    private String url = "";

    @Option(
            names = "--calibrate",
            paramLabel = "FILE",
            required = true,
            description = "Times that lab calibrate has measured with this server.")
    private Path file = Path.of("");

    @Mixin
    private final TraceListOption traces = new TraceListOption();

    @Option(
            names = "--requests",
            paramLabel = "N",
            defaultValue = "300",
            description = "The first so many requests of each trace, 2 to 100000. Default: ${DEFAULT-VALUE}.")
    private int requests;

    @Option(
            names = "--load",
            paramLabel = "SHARE",
            defaultValue = "0.5",
            description = "Share of the time that the engine is to be busy, above 0 to 10: the trace's times are scaled"
                    + " to it. Default: ${DEFAULT-VALUE}.")
    private double load;

    @Option(
            names = "--blocks",
            paramLabel = "N",
            description = "Blocks that the server's cache holds. Default: more than the trace has.")
    private @Nullable Integer blocks;

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            defaultValue = "importance",
            description = "Policy of the server's cache, one that replay takes. Default: ${DEFAULT-VALUE}.")
    private String policy = "";

    @Mixin
    private final FormatOption format = new FormatOption();

    private static final List<Column> COLUMNS = List.of(
            Column.key("trace", 24),
            Column.count("requests", "requests"),
            Column.percent("token hits predicted", "predictedTokenHitRatio"),
            Column.percent("measured", "measuredTokenHitRatio"),
            Column.seconds("first token p50 predicted", "predictedTtftP50Seconds"),
            Column.seconds("measured", "measuredTtftP50Seconds"),
            Column.seconds("p99 predicted", "predictedTtftP99Seconds"),
            Column.seconds("measured", "measuredTtftP99Seconds"));

    @Override
    public Integer call() throws IOException, InterruptedException {
        EngineCalibration calibration = checkedCalibration();
        SimulatedCache cache = ReplayCatalogue.named(policy).orElseThrow();
        RowPrinter printer = new RowPrinter(io, format.format());
        try (HttpCompletionServer server = HttpCompletionServer.connect(url);
                ProgressLine progressLine = new ProgressLine(io.err())) {
            if (!server.model().equals(calibration.model())) {
                throw io.usageError("--calibrate is of the model '" + calibration.model() + "', but " + server.address()
                        + " serves '" + server.model() + "': calibrate with this server");
            }
            for (TraceSource source : traces.traceSources()) {
                Trace whole = TraceOption.loadTrace(source, io.err());
                Trace trace = whole.firstRequests(requests);
                int capacity = blocks == null ? distinctBlocks(trace) : blocks;
                PredictionCheck.Outcome outcome = new PredictionCheck(server, calibration, cache)
                        .run(
                                trace,
                                load,
                                capacity,
                                RandomGenerator.getDefault().nextLong(),
                                sent -> progressLine.update(trace.name() + ": " + sent + " of "
                                        + trace.requests().size() + " requests"));
                progressLine.update("");
                PlanningRows rows = new PlanningRows(io, printer, List.of(source), COLUMNS);
                rows.beginRun(source, TraceDigest.of(source, whole));
                rows.add(row(trace, calibration, capacity, outcome));
                remarks(outcome, calibration);
            }
        }
        if (printer.isText()) {
            io.printText(
                    "Runs of small models differ by a fifth at the median; where all differ in one direction, calibrate"
                            + " again with the server idle.");
        }
        return 0;
    }

    private static int distinctBlocks(Trace trace) {
        return Math.max(1, new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS).nodeCount());
    }

    private EngineCalibration checkedCalibration() {
        return io.check(() -> {
            HttpCompletionServer.parse(url);
            format.format();
            traces.traceSources();
            if (requests < 2 || requests > 100_000) {
                throw PlanningOptions.invalidOption("--requests", String.valueOf(requests), "2 to 100000");
            }
            if (!(load > 0 && load <= MAX_LOAD)) {
                throw PlanningOptions.invalidOption("--load", String.valueOf(load), "above 0 to 10");
            }
            if (blocks != null && blocks < 1) {
                throw PlanningOptions.invalidOption("--blocks", String.valueOf(blocks), "1 and up");
            }
            if (ReplayCatalogue.named(policy).isEmpty()) {
                throw PlanningOptions.invalidOption("--policy", policy, ReplayCatalogue.names());
            }
            return PlanningOptions.readCalibration(file);
        });
    }

    /// One trace. `requests` are those that were answered, and hit ratios are tokens found over those of all
    /// prompts.
    private ResultRow row(Trace trace, EngineCalibration calibration, int capacity, PredictionCheck.Outcome outcome) {
        return new ResultRow()
                .put("trace", trace.name())
                .put("server", calibration.server())
                .put("model", calibration.model())
                .put("policy", policy)
                .put("blocks", capacity)
                .put("requests", outcome.answers().size())
                .put("cutPrompts", outcome.cutPrompts())
                .put("load", load)
                .put("predictedTokenHitRatio", (double) outcome.predictedCachedTokens() / outcome.promptTokens())
                .put("measuredTokenHitRatio", (double) outcome.measuredCachedTokens() / outcome.promptTokens())
                .put("predictedTtftP50Seconds", outcome.predicted().p50Seconds())
                .put("measuredTtftP50Seconds", outcome.measuredSeconds(0.5))
                .put("predictedTtftP99Seconds", outcome.predicted().p99Seconds())
                .put("measuredTtftP99Seconds", outcome.measuredSeconds(0.99));
    }

    private void remarks(PredictionCheck.Outcome outcome, EngineCalibration calibration) {
        if (outcome.cutPrompts() > 0) {
            io.printError(
                    outcome.cutPrompts() + " prompts were longer than the longest that was calibrated, and were cut");
        }
        long differing = Math.abs(outcome.measuredCachedTokens() - outcome.predictedCachedTokens());
        if (differing > MAX_HIT_DIFFERENCE * outcome.promptTokens()) {
            io.printError("found tokens are not those predicted: does the cache hold --blocks blocks of "
                    + calibration.blockTokens() + " tokens, by --policy, and was it empty or large enough?");
        }
    }
}
