package io.kvcache.planner.cli;

import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.lab.PlacementSimulator;
import io.kvcache.planner.lab.PlacementSimulator.JoinRow;
import io.kvcache.planner.lab.PlacementSimulator.TraceRow;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.AgentTraceGenerator.AgentWorkload;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/// `kvcache sim --placement`: the options, and tables of what a trace finds and what a join moves.
public final class PlacementSimRunner {

    /// Draining, gone, joining, serving.
    private static final int CHANGES_PER_RESTART = 4;

    @Option(
            names = "--placement",
            required = true,
            description = "Replay a trace over nodes that share its blocks, and let one more join.")
    private boolean placement;

    @Option(
            names = "--nodes",
            paramLabel = "N",
            split = ",",
            description = "With --placement: numbers of nodes. Default: 4,16,64.")
    private List<Integer> nodes = new ArrayList<>(List.of(4, 16, 64));

    @Option(
            names = "--blocks",
            paramLabel = "N",
            description = "With --placement: blocks for which all nodes together have room. Default: 50000.")
    private int blocks = 50_000;

    @Option(
            names = "--trace",
            paramLabel = "TRACE",
            description =
                    "With --placement: a file in the format of Mooncake, Qwen-Bailian or token ids, or conversation,"
                            + " synthetic, generated[:SEED], popular[:SEED], hostile[:SEED], agents[:SEED][:NAME=N...] or"
                            + " mixed[:SEED][:NAME=N...], NAME of " + AgentWorkload.NAMES
                            + ". Default: conversation where it is"
                            + " found, else generated.")
    private String trace = "";

    @Option(
            names = "--format",
            paramLabel = "text|json|csv",
            description = "With --placement: tables, one JSON object a line, or comma-separated values. Default: text.")
    private String format = "text";

    @Option(names = "--json", description = "With --placement: as --format json.")
    private boolean json;

    private static final List<Column> COLUMNS = List.of(
            Column.key("nodes"),
            Column.percent("found", "hitRatio"),
            Column.percent("one pool", "poolHitRatio"),
            Column.percent("least", "minHitRatio"),
            Column.number("read max/mean", "readMaxOverMean"),
            Column.number("stored max/mean", "storedMaxOverMean"),
            Column.number("nodes a read", "nodesPerRead"),
            Column.number("groups max/mean", "groupsMaxOverMean"),
            Column.percent("groups moved", "groupsMovedShare"),
            Column.number("of 1/(n+1)", "groupsMovedOverFairShare"),
            Column.number("slots max/mean", "slotsMaxOverMean"),
            Column.percent("slots moved", "slotsMovedShare"),
            Column.number("of 1/(n+1)", "slotsMovedOverFairShare"),
            Column.bytes("view", "viewBytes"),
            Column.number("MiB/h to a client", "viewMibPerClientHour"));

    /// Returns the exit code.
    public int run(CommandIo io) throws IOException {
        TraceSource source = io.check(this::checkedSource);
        OutputFormat chosen = io.check(() -> PlanningOptions.outputFormat(format, json));
        Trace read = TraceOption.loadTrace(source, io.err());
        String sha256 = TraceDigest.of(source, read);
        PlanningRows rows = new PlanningRows(io, new RowPrinter(io, chosen), List.of(source), COLUMNS);
        rows.beginRun(source, sha256);
        rows.head(
                "%s: %,d requests; room for %,d blocks in all",
                read.name(), read.requests().size(), blocks);
        PlacementSimulator simulator = new PlacementSimulator(read, blocks);
        try (ProgressLine progressLine = new ProgressLine(io.err())) {
            double pool = simulator.replay(1).hitRatio();
            for (int count : nodes) {
                progressLine.update("replaying over " + count + " nodes");
                ResultRow row = row(read.name(), count, pool, simulator.replay(count), PlacementSimulator.join(count));
                progressLine.update("");
                rows.add(row);
            }
        }
        rows.note(
                "moved: of the groups of random keys or the slots, those that change their owner when one more node joins."
                        + " MiB/h: views that a client is sent while all nodes are restarted within an hour, "
                        + CHANGES_PER_RESTART + " changes each.");
        return 0;
    }

    /// Some number of nodes: what the trace finds there as the mean of three sets of names and in the worst set,
    /// what a join moves and what clients are sent.
    private ResultRow row(String trace, int count, double pool, TraceRow hits, JoinRow join) {
        return new ResultRow()
                .put("trace", trace)
                .put("rule", BlockCountingRule.FULL_BLOCKS.commandName())
                .put("policy", "lru")
                .put("nodes", count)
                .put("blocks", blocks)
                .put("poolHitRatio", pool)
                .put("hitRatio", hits.hitRatio())
                .put("minHitRatio", hits.minHitRatio())
                .put("readMaxOverMean", hits.readBalance())
                .put("storedMaxOverMean", hits.storedBalance())
                .put("nodesPerRead", hits.serversPerRead())
                .put("groupsMaxOverMean", join.groupBalance())
                .put("groupsMovedShare", join.groupsMoved())
                .put("groupsMovedOverFairShare", join.groupsMovedOverShare())
                .put("slotsMaxOverMean", join.slotBalance())
                .put("slotsMovedShare", join.slotsMoved())
                .put("slotsMovedOverFairShare", join.slotsMovedOverShare())
                .put("viewBytes", PlacementSimulator.viewBytes(count))
                .put("viewMibPerClientHour", viewMibPerHour(count));
    }

    private static double viewMibPerHour(int nodes) {
        return (double) PlacementSimulator.viewBytes(nodes) * nodes * CHANGES_PER_RESTART / (1 << 20);
    }

    private TraceSource checkedSource() {
        assert placement : "picocli makes this object for --placement alone";
        for (int count : nodes) {
            if (count < 1 || count > PlacementSimulator.MAX_SERVERS) {
                throw PlanningOptions.invalidOption(
                        "--nodes", String.valueOf(count), "1 to " + PlacementSimulator.MAX_SERVERS);
            }
        }
        if (blocks < 1) {
            throw PlanningOptions.invalidOption("--blocks", String.valueOf(blocks), "at least 1");
        }
        String found =
                new TraceFinder().findOrGenerated(List.of("conversation")).getFirst();
        return TraceSource.parse(trace.isEmpty() ? found : trace);
    }
}
