package io.kvcache.bench.cli;

import io.kvcache.bench.server.Cell;
import io.kvcache.bench.server.Contender;
import io.kvcache.bench.server.LoadResult;
import io.kvcache.bench.server.ServerComparison;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `kvcache bench server`: this server and Debian's redis-server in turn on the same cores, under one client with a
/// thread a connection.
@Command(
        name = "server",
        description = "Compare the server with redis-server (apt-get install redis-server) on this machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ServerBenchCommand implements Callable<Integer> {

    private static final double LEAST_CELL = 0.9;
    private static final double LEAST_GET = 1.3;
    private static final double LEAST_SET = 1.0;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Override
    public Integer call() throws IOException, InterruptedException {
        List<Cell> cells;
        try (Contender redis = Contender.redis();
                Contender ours = Contender.ours(Kvcache.class.getName())) {
            cells = new ServerComparison(
                            ours,
                            redis,
                            quick ? 1 : 3,
                            Duration.ofMillis(quick ? 200 : 1000),
                            step -> say(spec.commandLine().getErr(), "kvcache bench: " + step))
                    .run();
        }
        return print(cells) || !strict ? 0 : 1;
    }

    private boolean print(List<Cell> cells) {
        PrintWriter out = spec.commandLine().getOut();
        say(out, "                     |        KVCache            |        Redis              |");
        say(out, "          KiB  conns |   GB/s   p50 µs   p99 µs  |   GB/s   p50 µs   p99 µs  |  ratio");
        for (Cell cell : cells) {
            say(
                    out,
                    String.format(
                            Locale.ROOT,
                            "%s  %8d  %5d |%s |%s | %6.2f%s",
                            cell.load().write() ? "SET" : "GET",
                            cell.load().bytes() >> 10,
                            cell.load().connections(),
                            figures(cell, cell.ours()),
                            figures(cell, cell.theirs()),
                            cell.ratio(),
                            cell.ratio() < LEAST_CELL ? "  below " + LEAST_CELL : ""));
        }
        double get = ServerComparison.geometricMean(cells, false);
        double set = ServerComparison.geometricMean(cells, true);
        say(
                out,
                String.format(
                        Locale.ROOT,
                        "geometric mean of GET %.2f (budget %.2f), of SET %.2f (budget %.2f)",
                        get,
                        LEAST_GET,
                        set,
                        LEAST_SET));
        return get >= LEAST_GET && set >= LEAST_SET && cells.stream().allMatch(cell -> cell.ratio() >= LEAST_CELL);
    }

    private static String figures(Cell cell, LoadResult result) {
        return String.format(
                Locale.ROOT,
                " %6.2f %8.0f %8.0f ",
                Cell.gigabytes(cell.load(), result),
                result.p50Micros(),
                result.p99Micros());
    }

    private static void say(PrintWriter to, String line) {
        to.println(line);
        to.flush();
    }
}
