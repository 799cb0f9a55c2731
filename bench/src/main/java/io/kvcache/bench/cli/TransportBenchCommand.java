package io.kvcache.bench.cli;

import io.kvcache.bench.server.ServerProcess;
import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.bench.transport.HeapComparison;
import io.kvcache.bench.transport.HeapComparison.HeapResult;
import io.kvcache.bench.transport.MatchComparison;
import io.kvcache.bench.transport.MatchComparison.MatchResult;
import io.kvcache.bench.transport.SharedMemoryComparison;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryResult;
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
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

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

    /// What is measured.
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

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(
            names = "--part",
            split = ",",
            description =
                    "What to measure: TCP, REDIS, AERON, UDP, UCX, SHARED, STAGED, MATCH, HEAP; all when not said.")
    private List<Comparison> parts = List.of(Comparison.values());

    @Option(
            names = "--term",
            paramLabel = "BYTES",
            defaultValue = "1048576",
            description = "Of a term of Aeron; ${DEFAULT-VALUE} when not said.")
    private int termBytes;

    @Option(names = "--json", description = "One JSON object a line instead of tables.")
    private boolean json;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Option(names = "--record", description = "Also write page and lines to bench/results, with machine and commit.")
    private boolean recorded;

    private final List<BenchResult> answers = new ArrayList<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        int rounds = quick ? 1 : ROUNDS;
        Duration time = Duration.ofMillis(quick ? 100 : 1000);
        TransportTextReport table = new TransportTextReport(json ? new PrintWriter(Writer.nullWriter()) : out());
        try {
            for (Comparison comparison : parts) {
                int before = answers.size();
                measure(comparison, rounds, time, table);
                List<BenchResult> found = answers.subList(before, answers.size());
                table.printMissed(found);
                if (json) {
                    out().print(new BenchReportFormat.JsonLines().format(suite(found), found));
                    out().flush();
                }
            }
        } finally {
            if (recorded && !answers.isEmpty()) { // also half an hour of answers before a part that failed
                record();
            }
        }
        return !strict || answers.stream().allMatch(BenchResult::isWithinThreshold) ? 0 : 1;
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }

    private void record() throws IOException {
        printError("kvcache bench: recorded in " + BenchResultWriter.write(spec, suite(answers), answers));
    }

    private static BenchmarkSuite suite(List<BenchResult> answers) {
        return new BenchmarkSuite(
                "transport",
                "the remote cache beside the limits of what carries its blocks",
                answers.stream().map(BenchResult::spec).toList());
    }

    private void measure(Comparison part, int rounds, Duration time, TransportTextReport table)
            throws IOException, InterruptedException {
        TransportComparison comparison =
                new TransportComparison(rounds, time, step -> printError("kvcache bench: " + part + ", " + step));
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
        answers.addAll(new TransportResults(by, against, quick ? 1 : ROUNDS).transportResults(cells, thresholdRule));
    }

    private void staged(TransportComparison comparison, TransportTextReport table)
            throws IOException, InterruptedException {
        if (!SharedMemoryComparison.isSupported()) {
            printError("kvcache bench: no /dev/shm here, so no shared memory to put into");
            return;
        }
        List<TransportResult> cells = comparison.runStaged();
        addResults("staged", "TCP", cells, transferSpec -> new Threshold.NoThreshold());
        table.print(cells, "put through shared memory", "over TCP");
    }

    private void redis(TransportComparison comparison, TransportTextReport table)
            throws IOException, InterruptedException {
        if (!ServerProcess.isRedisInstalled()) {
            printError("kvcache bench: no Redis here (apt-get install redis-server)");
            return;
        }
        List<TransportResult> cells = comparison.runRedis();
        addResults("tcp-redis", "Redis", cells, TransportThresholds::ratioToRedis);
        table.print(cells, "over TCP", "Redis");
    }

    private void ucx(TransportComparison comparison, TransportTextReport table)
            throws IOException, InterruptedException {
        if (!UcxMemory.possible() || !SharedMemoryComparison.isSupported()) {
            printError("kvcache bench: no UCX here (apt-get install libucx0)");
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
            printError("kvcache bench: no /dev/shm here, so no shared memory");
            return;
        }
        List<SharedMemoryResult> cells =
                new SharedMemoryComparison(rounds, time, step -> printError("kvcache bench: " + step)).run();
        answers.addAll(new TransportResults("shared", "bare copy", rounds).sharedMemoryResults(cells));
        table.printShared(cells);
    }

    private void printError(String line) {
        PrintWriter errors = spec.commandLine().getErr();
        errors.println(line);
        errors.flush();
    }
}
