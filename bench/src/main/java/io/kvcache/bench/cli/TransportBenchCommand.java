package io.kvcache.bench.cli;

import io.kvcache.bench.server.ServerProcess;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.bench.transport.HeapComparison;
import io.kvcache.bench.transport.HeapComparison.HeapResult;
import io.kvcache.bench.transport.MatchComparison;
import io.kvcache.bench.transport.MatchComparison.MatchResult;
import io.kvcache.bench.transport.SharedMemoryComparison;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryResult;
import io.kvcache.bench.transport.TransferEndpoint.ResourceUsage;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransportComparison;
import io.kvcache.bench.transport.TransportComparison.TransportResult;
import io.kvcache.bench.transport.TransportResults;
import io.kvcache.bench.transport.TransportThresholds;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache bench transport`: the remote cache from another process, over TCP beside a responder that does
/// nothing but answer and whose client sums the bytes too, and beside Redis; over Aeron beside TCP and beside bare
/// Aeron; over shared memory beside a bare copy, and put through it beside TCP; how long it takes to ask what is
/// there; and what requests leave on the heap.
@Command(
        name = "transport",
        description = "Compare the remote cache with a bare responder and a bare copy on this machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class TransportBenchCommand implements Callable<Integer> {

    /// One comparison.
    private enum Comparison {
        TCP,
        REDIS,
        AERON,
        UDP,
        UCX,
        SHARED,
        STAGED,
        MATCH,
        HEAP
    }

    private static final int ROUNDS = 5;

    @Option(
            names = "--part",
            split = ",",
            description = "Parts: TCP, REDIS, AERON, UDP, UCX, SHARED, STAGED, MATCH, HEAP. Default: all.")
    private List<Comparison> parts = List.of(Comparison.values());

    @Option(
            names = "--term",
            paramLabel = "BYTES",
            defaultValue = "1048576",
            description = "Length of Aeron's terms. Default: ${DEFAULT-VALUE}.")
    private int termBytes;

    @Mixin
    private final SuiteOptions options = new SuiteOptions();

    private final List<BenchResult> answers = new ArrayList<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        CommandIo io = options.io();
        int rounds = rounds();
        Duration time = Duration.ofMillis(options.isQuick() ? 100 : 1000);
        TransportTextReport table =
                new TransportTextReport(options.isJson() ? new PrintWriter(Writer.nullWriter()) : io.out());
        try {
            for (Comparison comparison : parts) {
                int before = answers.size();
                measure(comparison, rounds, time, table);
                List<BenchResult> found = answers.subList(before, answers.size());
                table.printMissed(found);
                if (options.isJson()) {
                    io.print(report(found).toJsonLines());
                }
            }
        } finally {
            if (!answers.isEmpty()) { // also half an hour of answers before a part that failed
                options.record(report(answers));
            }
        }
        return options.exitCode(report(answers));
    }

    private static BenchReport report(List<BenchResult> answers) {
        return BenchReport.of("transport", "the remote cache beside the limits of what carries its blocks", answers);
    }

    private int rounds() {
        return options.isQuick() ? 1 : ROUNDS;
    }

    private void measure(Comparison part, int rounds, Duration time, TransportTextReport table)
            throws IOException, InterruptedException {
        TransportComparison comparison =
                new TransportComparison(rounds, time, step -> options.io().printError(part + ", " + step));
        switch (part) {
            case TCP -> {
                List<TransportResult> cells = comparison.run();
                addResults("tcp", "bare responder", cells, TransportThresholds::ratioToBaselineTcp);
                table.print(cells, "over TCP", "bare responder");
            }
            case REDIS -> redis(comparison, table);
            case AERON -> {
                List<TransportResult> beside = comparison.runAeron(termBytes);
                addResults("aeron", "TCP", beside, TransportThresholds::aeronSpeed);
                table.print(beside, "Aeron by IPC", "over TCP");
                List<TransportResult> bare = comparison.runBareAeron(termBytes);
                addResults("aeron-bare", "bare Aeron", bare, TransportThresholds::ratioToBaselineAeron);
                table.print(bare, "Aeron by IPC", "bare Aeron");
            }
            case UDP -> {
                List<TransportResult> cells = comparison.runAeronUdp(termBytes);
                addResults("aeron-udp", "TCP", cells, transferSpec -> new Threshold.NoThreshold());
                table.print(cells, "Aeron by UDP", "over TCP");
            }
            case UCX -> ucx(comparison, table);
            case SHARED -> shared(rounds, time, table);
            case STAGED -> staged(comparison, table);
            case MATCH -> {
                List<MatchResult> cells = new MatchComparison(rounds, time).run(termBytes);
                answers.addAll(TransportResults.matchResults(cells, rounds));
                table.printMatches(cells);
            }
            case HEAP -> {
                List<HeapResult> cells = new HeapComparison().run();
                answers.addAll(TransportResults.heapResults(cells));
                table.printHeap(cells);
            }
        }
    }

    private void addResults(
            String by, String against, List<TransportResult> cells, TransportResults.ThresholdRule thresholdRule) {
        answers.addAll(new TransportResults(by, against, rounds()).transportResults(cells, thresholdRule));
    }

    private void staged(TransportComparison comparison, TransportTextReport table)
            throws IOException, InterruptedException {
        if (!SharedMemoryComparison.isSupported()) {
            options.io().printError("no /dev/shm here, so no shared memory to put into");
            return;
        }
        List<TransportResult> cells = comparison.runStaged();
        addResults("staged", "TCP", cells, transferSpec -> new Threshold.NoThreshold());
        table.print(cells, "put through shared memory", "over TCP");
    }

    private void redis(TransportComparison comparison, TransportTextReport table)
            throws IOException, InterruptedException {
        if (!ServerProcess.isRedisInstalled()) {
            options.io().printError("no Redis here (apt-get install redis-server)");
            return;
        }
        List<TransportResult> cells = comparison.runRedis();
        addResults("tcp-redis", "Redis", cells, TransportThresholds::ratioToRedis);
        table.print(cells, "over TCP", "Redis");
    }

    private void ucx(TransportComparison comparison, TransportTextReport table)
            throws IOException, InterruptedException {
        if (!UcxMemory.possible() || !SharedMemoryComparison.isSupported()) {
            options.io().printError("no UCX here (apt-get install libucx0)");
            return;
        }
        for (String transports : List.of("tcp", "shm")) {
            List<TransportResult> cells = comparison.runUcx(transports);
            addResults("ucx-" + transports, "TCP", cells, transferSpec -> new Threshold.NoThreshold());
            table.print(cells, "UCX over " + transports, "over TCP");
        }
    }

    private void shared(int rounds, Duration time, TransportTextReport table) throws IOException, InterruptedException {
        if (!SharedMemoryComparison.isSupported()) {
            options.io().printError("no /dev/shm here, so no shared memory");
            return;
        }
        List<SharedMemoryResult> cells = new SharedMemoryComparison(rounds, time, options.io()::printError).run();
        answers.addAll(new TransportResults("shared", "bare copy", rounds).sharedMemoryResults(cells));
        table.printShared(cells);
    }

    /// Prints the results of the transport comparisons.
    private record TransportTextReport(PrintWriter out) {

        private static final String HEAD =
                "            KiB flight |   GB/s   p50 µs   p99 µs  CPU s/GB |   GB/s   p50 µs   p99 µs  CPU s/GB |"
                        + "  ratio | heap B/block: here  server";

        /// A comparison.
        ///
        /// @param ours a name for the left side
        /// @param other a name for the right side
        void print(List<TransportResult> cells, String ours, String other) {
            say("");
            say("                       |       %-27s  |       %-27s  |".formatted(ours, other));
            say(HEAD);
            for (TransportResult cell : cells) {
                say(String.format(
                        Locale.ROOT,
                        "%-7s  %6d %6d |%s%s |%s%s | %6.2f |          %9.0f %7.0f",
                        cell.cargo().operation().label(),
                        cell.cargo().bytes() >> 10,
                        cell.cargo().inFlight(),
                        figures(cell.ours()),
                        processor(cell.cost()),
                        figures(cell.bare()),
                        processor(cell.bareCost()),
                        cell.ratio(),
                        cell.cost().heapBytes(),
                        cell.cost().serverHeapBytes()));
            }
        }

        /// Uses of shared memory.
        void printShared(List<SharedMemoryResult> cells) {
            say("");
            say("                         |       shared memory       |         bare copy         |        | server");
            say(
                    "              KiB flight |   GB/s   p50 µs   p99 µs  |   GB/s   p50 µs   p99 µs  |  ratio | µs a block");
            for (SharedMemoryResult cell : cells) {
                say(String.format(
                        Locale.ROOT,
                        "%-9s  %6d %6d |%s |%s | %6.2f | %6.2f",
                        cell.use().name().toLowerCase(Locale.ROOT).replace('_', ' '),
                        cell.cargo().bytes() >> 10,
                        cell.cargo().inFlight(),
                        figures(cell.ours()),
                        figures(cell.bare()),
                        cell.ratio(),
                        cell.serverMicros()));
            }
        }

        /// Matches of 1,024 keys.
        void printMatches(List<MatchResult> cells) {
            say("");
            say("match of 1,024 keys    |   p50 µs   p99 µs | heap B/match: here  server");
            for (MatchResult cell : cells) {
                say(String.format(
                        Locale.ROOT,
                        "%-8s %-13s | %8.1f %8.1f |          %9.0f %7.0f",
                        cell.by(),
                        cell.told() ? "told before" : "keys sent",
                        cell.moves().p50Micros(),
                        cell.moves().p99Micros(),
                        cell.cost().heapBytes(),
                        cell.cost().serverHeapBytes()));
            }
        }

        /// Prints the heap bytes that transfers allocate.
        void printHeap(List<HeapResult> cells) {
            say("");
            say("heap of 64 KiB blocks  |  B/request  B/further block | server's: B/request  B/further block");
            for (HeapResult cell : cells) {
                say(String.format(
                        Locale.ROOT,
                        "%-22s | %10.0f %16.0f | %19.0f %16.0f",
                        cell.what(),
                        cell.request(),
                        cell.block(),
                        cell.serverRequest(),
                        cell.serverBlock()));
            }
        }

        /// The answers that are beyond their budgets.
        void printMissed(List<BenchResult> answers) {
            for (BenchResult benchResult : answers) {
                if (!benchResult.isWithinThreshold()) {
                    say(String.format(
                            Locale.ROOT,
                            "missed: %s is %.2f %s, ratio %.2f; wanted %s",
                            benchResult.spec().name(),
                            benchResult.value(),
                            benchResult.spec().unit(),
                            benchResult.ratio(),
                            benchResult.spec().threshold().describe()));
                }
            }
        }

        private static String figures(TransferStats transferStats) {
            return String.format(
                    Locale.ROOT,
                    " %6.2f %8.1f %8.1f ",
                    transferStats.gigabytes(),
                    transferStats.p50Micros(),
                    transferStats.p99Micros());
        }

        private static String processor(ResourceUsage resourceUsage) {
            return String.format(Locale.ROOT, " %8.3f", resourceUsage.processorSeconds());
        }

        private void say(String line) {
            out.println(line);
            out.flush();
        }
    }
}
