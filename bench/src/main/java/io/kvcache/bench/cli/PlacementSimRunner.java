package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningOptions.TraceOption;
import io.kvcache.bench.cli.RowPrinter.OutputFormat;
import io.kvcache.bench.lab.PlacementSimulator;
import io.kvcache.bench.lab.PlacementSimulator.JoinRow;
import io.kvcache.bench.lab.PlacementSimulator.TraceRow;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.trace.AgentWorkload;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceDigest;
import io.kvcache.bench.trace.TraceFinder;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Option;

/// `kvcache sim --placement`: the options, and tables of what a trace finds and what a join moves.
final class PlacementSimRunner {

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

    /// Some number of nodes: what the trace finds there, what a join moves and what clients are sent.
    ///
    /// @param policy of each node
    /// @param blocks for which all nodes together have room
    /// @param poolHitRatio of one node with that room
    /// @param hitRatio the mean of three sets of names
    /// @param minHitRatio of the worst set
    /// @param readMaxOverMean blocks read from the busiest node, over the mean
    /// @param storedMaxOverMean distinct blocks at the fullest node, over the mean
    /// @param nodesPerRead that have blocks of a request that finds any
    /// @param groupsMaxOverMean groups of random keys at the node that owns the most, over the mean
    /// @param groupsMovedShare that change their owner when one more node joins
    /// @param groupsMovedOverFairShare 1 at best
    /// @param viewMibPerClientHour that a client is sent while all nodes are restarted within an hour
    private record PlacementRow(
            String trace,
            String rule,
            String policy,
            int nodes,
            int blocks,
            double poolHitRatio,
            double hitRatio,
            double minHitRatio,
            double readMaxOverMean,
            double storedMaxOverMean,
            double nodesPerRead,
            double groupsMaxOverMean,
            double groupsMovedShare,
            double groupsMovedOverFairShare,
            double slotsMaxOverMean,
            double slotsMovedShare,
            double slotsMovedOverFairShare,
            int viewBytes,
            double viewMibPerClientHour) {}

    /// Returns the exit code.
    int run(CommandIo io) throws IOException {
        TraceSource source = io.check(this::checkedSource);
        OutputFormat chosen = io.check(() -> PlanningOptions.outputFormat(format, json));
        Trace read = TraceOption.loadTrace(source, io.err());
        String sha256 = TraceDigest.of(source, read);
        PlanningRows rows = new PlanningRows(io, new RowPrinter(io, chosen), List.of(source));
        rows.beginRun(source, sha256);
        PlacementSimulator simulator = new PlacementSimulator(read, blocks);
        try (ProgressLine progressLine = new ProgressLine(io.err())) {
            if (!rows.isText()) {
                printRows(rows, read, simulator, progressLine);
                return 0;
            }
            printHits(io, read, sha256, simulator, progressLine);
            printJoins(io, progressLine);
        }
        printViews(io);
        return 0;
    }

    private void printRows(PlanningRows rows, Trace read, PlacementSimulator simulator, ProgressLine progressLine) {
        double pool = simulator.replay(1).hitRatio();
        for (int count : nodes) {
            progressLine.update("replaying over " + count + " nodes");
            TraceRow hits = simulator.replay(count);
            JoinRow join = PlacementSimulator.join(count);
            progressLine.close();
            rows.add(new PlacementRow(
                    read.name(),
                    BlockCountingRule.FULL_BLOCKS.commandName(),
                    "lru",
                    count,
                    blocks,
                    pool,
                    hits.hitRatio(),
                    hits.minHitRatio(),
                    hits.readBalance(),
                    hits.storedBalance(),
                    hits.serversPerRead(),
                    join.groupBalance(),
                    join.groupsMoved(),
                    join.groupsMovedOverShare(),
                    join.slotBalance(),
                    join.slotsMoved(),
                    join.slotsMovedOverShare(),
                    PlacementSimulator.viewBytes(count),
                    viewMibPerHour(count)));
        }
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
        String found = new TraceFinder().find("conversation").isPresent() ? "conversation" : "generated:1";
        return TraceSource.parse(trace.isEmpty() ? found : trace);
    }

    private void printHits(
            CommandIo io, Trace read, String sha256, PlacementSimulator simulator, ProgressLine progressLine) {
        double pool = simulator.replay(1).hitRatio();
        io.printText(String.format(
                Locale.ROOT,
                "%s: %,d requests; room for %,d blocks in all; as one pool, %s of the blocks are found %s",
                read.name(),
                read.requests().size(),
                blocks,
                PlanningRows.percent(pool),
                PlanningRows.origin(sha256)));
        io.println("  nodes     found  of the pool     least  read max/mean  stored max/mean  nodes a read");
        for (int count : nodes) {
            progressLine.update("replaying over " + count + " nodes");
            TraceRow row = simulator.replay(count);
            progressLine.close();
            io.println(String.format(
                    Locale.ROOT,
                    "%,7d  %8s  %9.2f %%  %8s  %13.2f  %15.2f  %12.2f",
                    row.servers(),
                    PlanningRows.percent(row.hitRatio()),
                    pool == 0 ? 100 : 100 * row.hitRatio() / pool,
                    PlanningRows.percent(row.minHitRatio()),
                    row.readBalance(),
                    row.storedBalance(),
                    row.serversPerRead()));
        }
    }

    /// A client follows one server, and is sent the whole view at each change.
    private void printViews(CommandIo io) {
        io.printText("Views, as a client follows them while all nodes are restarted within an hour, "
                + CHANGES_PER_RESTART + " changes each:");
        io.println("  nodes  bytes of a view  MiB an hour to a client");
        for (int count : nodes) {
            int bytes = PlacementSimulator.viewBytes(count);
            io.println(String.format(Locale.ROOT, "%,7d  %,15d  %,23.1f", count, bytes, viewMibPerHour(count)));
        }
    }

    private void printJoins(CommandIo io, ProgressLine progressLine) {
        io.println("One more node joins, random keys:");
        io.println("  nodes  groups max/mean  groups moved  of 1/(n+1)  slots max/mean  slots moved  of 1/(n+1)");
        for (int count : nodes) {
            progressLine.update("ranking " + count + " nodes");
            JoinRow row = PlacementSimulator.join(count);
            progressLine.close();
            io.println(String.format(
                    Locale.ROOT,
                    "%,7d  %15.3f  %12.5f  %10.3f  %14.3f  %11.5f  %10.3f",
                    row.servers(),
                    row.groupBalance(),
                    row.groupsMoved(),
                    row.groupsMovedOverShare(),
                    row.slotBalance(),
                    row.slotsMoved(),
                    row.slotsMovedOverShare()));
        }
    }
}
