package io.kvcache.bench.cli;

import io.kvcache.bench.transport.Moves;
import io.kvcache.bench.transport.Operation;
import io.kvcache.bench.transport.TransportCell;
import io.kvcache.bench.transport.TransportComparison;
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

/// `kvcache bench transport`: the remote cache over TCP, from another process, beside a responder that does nothing but
/// answer and whose client sums the bytes too.
@Command(
        name = "transport",
        description = "Compare the remote cache over TCP with a bare responder on this machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class TransportBenchCommand implements Callable<Integer> {

    /// Of blocks of 1 and 4 MiB, with more than one in flight; the others are shown only.
    private static final double LEAST = 0.9;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Override
    public Integer call() throws IOException, InterruptedException {
        PrintWriter errors = spec.commandLine().getErr();
        List<TransportCell> cells = new TransportComparison(
                        quick ? 1 : 5,
                        Duration.ofMillis(quick ? 100 : 1000),
                        step -> say(errors, "kvcache bench: " + step))
                .run();
        return print(cells) || !strict ? 0 : 1;
    }

    private boolean print(List<TransportCell> cells) {
        PrintWriter out = spec.commandLine().getOut();
        say(out, "                       |       remote cache        |      bare responder       |");
        say(out, "            KiB flight |   GB/s   p50 µs   p99 µs  |   GB/s   p50 µs   p99 µs  |  ratio");
        boolean all = true;
        for (TransportCell cell : cells) {
            boolean low = judged(cell) && cell.ratio() < LEAST;
            all &= !low;
            say(
                    out,
                    String.format(
                            Locale.ROOT,
                            "%-7s  %6d %6d |%s |%s | %6.2f%s",
                            cell.cargo().operation().text(),
                            cell.cargo().bytes() >> 10,
                            cell.cargo().inFlight(),
                            figures(cell.ours()),
                            figures(cell.bare()),
                            cell.ratio(),
                            low ? "  below " + LEAST : ""));
        }
        return all;
    }

    private static boolean judged(TransportCell cell) {
        return cell.cargo().inFlight() > 1
                && cell.cargo().bytes() >= 1 << 20
                && cell.cargo().operation() == Operation.ACQUIRE;
    }

    private static String figures(Moves moves) {
        return String.format(
                Locale.ROOT, " %6.2f %8.0f %8.0f ", moves.gigabytes(), moves.p50Micros(), moves.p99Micros());
    }

    private static void say(PrintWriter to, String line) {
        to.println(line);
        to.flush();
    }
}
