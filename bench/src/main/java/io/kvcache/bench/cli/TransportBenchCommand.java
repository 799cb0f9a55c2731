package io.kvcache.bench.cli;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import io.kvcache.bench.suite.Suite;
import io.kvcache.bench.transport.Cargo;
import io.kvcache.bench.transport.Moves;
import io.kvcache.bench.transport.Operation;
import io.kvcache.bench.transport.SharedCell;
import io.kvcache.bench.transport.SharedComparison;
import io.kvcache.bench.transport.TransportAnswers;
import io.kvcache.bench.transport.TransportCell;
import io.kvcache.bench.transport.TransportComparison;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `kvcache bench transport`: the remote cache from another process, over TCP beside a responder that does
/// nothing but answer and whose client sums the bytes too, over Aeron beside TCP, and over shared memory beside
/// a bare copy.
@Command(
        name = "transport",
        description = "Compare the remote cache with a bare responder and a bare copy on this machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class TransportBenchCommand implements Callable<Integer> {

    /// What carries the blocks.
    private enum Part {
        TCP,
        AERON,
        UCX,
        SHARED
    }

    /// Of blocks of 1 and 4 MiB, with more than one in flight; the others are shown only.
    private static final double LEAST = 0.9;

    /// Of a bare copy, blocks of 1 and 4 MiB that are copied without a message.
    private static final double LEAST_COPY = 0.85;

    /// Of bare Aeron, blocks of 1 MiB.
    private static final double LEAST_AERON = 0.6;

    /// Half of the copies of 64 KiB without a message.
    private static final double SMALL_COPY_MICROS = 8;

    /// Half of the views in place, while whoever answers is awake, and after a millisecond in which he was
    /// not.
    private static final double VIEW_MICROS = 25;

    private static final double IDLE_VIEW_MICROS = 120;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(names = "--part", split = ",", description = "What to measure: TCP, AERON, UCX, SHARED; all when not said.")
    private List<Part> parts = List.of(Part.values());

    @Option(
            names = "--term",
            paramLabel = "BYTES",
            defaultValue = "1048576",
            description = "Of a term of Aeron; ${DEFAULT-VALUE} when not said.")
    private int termBytes;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Option(names = "--record", description = "Also write page and lines to bench/results, with machine and commit.")
    private boolean recorded;

    private final List<Answer> answers = new ArrayList<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        int rounds = quick ? 1 : 5;
        Duration time = Duration.ofMillis(quick ? 100 : 1000);
        boolean good = true;
        for (Part part : parts) {
            good &= measure(part, rounds, time);
        }
        if (recorded) {
            Suite suite = new Suite(
                    "transport",
                    "the remote cache beside the limits of what carries its blocks",
                    answers.stream().map(Answer::question).toList());
            say(spec.commandLine().getErr(), "kvcache bench: recorded in " + BenchRecord.write(spec, suite, answers));
        }
        return good || !strict ? 0 : 1;
    }

    private boolean measure(Part part, int rounds, Duration time) throws IOException, InterruptedException {
        PrintWriter errors = spec.commandLine().getErr();
        TransportComparison comparison =
                new TransportComparison(rounds, time, step -> say(errors, "kvcache bench: " + part + ", " + step));
        return switch (part) {
            case TCP -> {
                List<TransportCell> cells = comparison.run();
                answers.addAll(new TransportAnswers("tcp", "bare responder", rounds).of(cells, this::ofResponder));
                yield print(cells, "bare responder", true);
            }
            case AERON -> {
                aeron(comparison, rounds);
                yield true;
            }
            case UCX -> {
                ucx(comparison, rounds);
                yield true;
            }
            case SHARED -> shared(rounds, time);
        };
    }

    private void aeron(TransportComparison comparison, int rounds) throws IOException, InterruptedException {
        List<TransportCell> beside = comparison.runAeron(termBytes);
        answers.addAll(new TransportAnswers("aeron", "TCP", rounds).of(beside, cargo -> new Budget.None()));
        print(beside, "the same over TCP", false);
        List<TransportCell> bare = comparison.runBareAeron(termBytes);
        answers.addAll(new TransportAnswers("aeron-bare", "bare Aeron", rounds).of(bare, this::ofBareAeron));
        print(bare, "bare Aeron", false);
    }

    private void ucx(TransportComparison comparison, int rounds) throws IOException, InterruptedException {
        if (!UcxMemory.possible() || !SharedComparison.possible()) {
            say(spec.commandLine().getErr(), "kvcache bench: no UCX here (apt-get install libucx0)");
            return;
        }
        for (String transports : List.of("tcp", "shm")) {
            List<TransportCell> cells = comparison.runUcx(transports);
            answers.addAll(
                    new TransportAnswers("ucx-" + transports, "TCP", rounds).of(cells, cargo -> new Budget.None()));
            say(spec.commandLine().getOut(), "UCX over " + transports);
            print(cells, "the same over TCP", false);
        }
    }

    private boolean shared(int rounds, Duration time) throws IOException, InterruptedException {
        PrintWriter errors = spec.commandLine().getErr();
        if (!SharedComparison.possible()) {
            say(errors, "kvcache bench: no /dev/shm here, so no shared memory");
            return true;
        }
        List<SharedCell> cells =
                new SharedComparison(rounds, time, step -> say(errors, "kvcache bench: " + step)).run();
        answers.addAll(new TransportAnswers("shared", "bare copy", rounds).ofShared(cells));
        return printShared(cells);
    }

    private Budget ofResponder(Cargo cargo) {
        return judged(cargo) ? new Budget.RatioAtLeast(LEAST) : new Budget.None();
    }

    private Budget ofBareAeron(Cargo cargo) {
        return cargo.bytes() == 1 << 20 ? new Budget.RatioAtLeast(LEAST_AERON) : new Budget.None();
    }

    private boolean printShared(List<SharedCell> cells) {
        PrintWriter out = spec.commandLine().getOut();
        say(out, "");
        say(out, "                         |       shared memory       |         bare copy         |        | server");
        say(
                out,
                "              KiB flight |   GB/s   p50 µs   p99 µs  |   GB/s   p50 µs   p99 µs  |  ratio | µs a block");
        boolean all = true;
        for (SharedCell cell : cells) {
            String missed = missed(cell);
            all &= missed.isEmpty();
            say(
                    out,
                    String.format(
                            Locale.ROOT,
                            "%-9s  %6d %6d |%s |%s | %6.2f | %6.2f%s",
                            cell.use().name().toLowerCase(Locale.ROOT).replace('_', ' '),
                            cell.cargo().bytes() >> 10,
                            cell.cargo().inFlight(),
                            figures(cell.ours()),
                            figures(cell.bare()),
                            cell.ratio(),
                            cell.serverMicros(),
                            missed));
        }
        return all;
    }

    /// What a cell should have reached and has not, or nothing.
    private static String missed(SharedCell cell) {
        if (cell.cargo().inFlight() > 1) {
            return "";
        }
        double p50 = cell.ours().p50Micros();
        return switch (cell.use()) {
            case COPY ->
                cell.cargo().bytes() < 1 << 20
                        ? beyond(p50, SMALL_COPY_MICROS)
                        : cell.ratio() < LEAST_COPY ? "  below " + LEAST_COPY : "";
            case VIEW -> beyond(p50, VIEW_MICROS);
            case VIEW_IDLE -> beyond(p50, IDLE_VIEW_MICROS);
        };
    }

    private static String beyond(double p50, double most) {
        return p50 > most ? "  p50 above " + most : "";
    }

    private boolean print(List<TransportCell> cells, String other, boolean judging) {
        PrintWriter out = spec.commandLine().getOut();
        say(out, "                       |       remote cache        |     %-17s     |".formatted(other));
        say(out, "            KiB flight |   GB/s   p50 µs   p99 µs  |   GB/s   p50 µs   p99 µs  |  ratio");
        boolean all = true;
        for (TransportCell cell : cells) {
            boolean low = judging && judged(cell.cargo()) && cell.ratio() < LEAST;
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

    private static boolean judged(Cargo cargo) {
        return cargo.inFlight() > 1 && cargo.bytes() >= 1 << 20 && cargo.operation() == Operation.ACQUIRE;
    }

    private static String figures(Moves moves) {
        return String.format(
                Locale.ROOT, " %6.2f %8.1f %8.1f ", moves.gigabytes(), moves.p50Micros(), moves.p99Micros());
    }

    private static void say(PrintWriter to, String line) {
        to.println(line);
        to.flush();
    }
}
