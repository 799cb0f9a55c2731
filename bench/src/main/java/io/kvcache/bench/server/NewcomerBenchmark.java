package io.kvcache.bench.server;

import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.DoubleUnaryOperator;

/// The speed that a newcomer sees first: Debian's redis-benchmark on this server and on redis-server in turn.
///
/// - Small values: 100,000 random keys over 50 connections, in pipelines of 1, 16 and 100.
/// - Large values: 64 KiB to 32 MiB over 1, 2 and 8 connections, and the processor time that the servers take
///   for them. 32 MiB has no budget and is not part of the means.
///
/// redis-benchmark has one thread, which takes half of a machine with two cores.
final class NewcomerBenchmark implements ServerBenchmark {

    private static final Path PROGRAM = Path.of("/usr/bin/redis-benchmark");

    /// Our server evicts at 65,536 keys in each GiB, however small they are.
    private static final long HOST_BYTES = 4L << 30;

    private static final List<Integer> SMALL_SIZES = List.of(3, 512);
    private static final int SMALL_CONNECTIONS = 50;
    private static final int SMALL_KEYS = 100_000;
    private static final List<PipelineSpec> PIPELINES = List.of(
            new PipelineSpec(1, 60_000, 0.95, 0.97),
            new PipelineSpec(16, 500_000, 0.7, 0.9),
            new PipelineSpec(100, 500_000, 0.6, 0.85));

    private static final List<Integer> LARGE_SIZES = List.of(64 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> LARGE_CONNECTIONS = List.of(1, 2, 8);
    private static final int MAX_BUDGET_BYTES = 4 << 20;
    private static final Threshold LARGE = new Threshold.RatioAtLeast(0.85);
    private static final Threshold LARGE_MEAN = new Threshold.RatioAtLeast(1.0);
    private static final Threshold PROCESSOR_MEAN = new Threshold.RatioAtMost(1.05);

    private final RedisBenchmarkTool tool;

    NewcomerBenchmark() {
        this(PROGRAM);
    }

    /// @param program redis-benchmark
    NewcomerBenchmark(Path program) {
        tool = new RedisBenchmarkTool(program);
    }

    @Override
    public String name() {
        return "newcomer";
    }

    @Override
    public String title() {
        return "redis-benchmark, values of 3 bytes to 32 MiB, beside redis-server";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        tool.requireInstalled();
        List<BenchResult> answers = new ArrayList<>(withServers(benchmarkOptions, this::compareSmall));
        answers.addAll(withServers(benchmarkOptions, this::compareLarge));
        return answers;
    }

    /// Starts both servers anew, so that small and large values leave each other's memory alone.
    private static List<BenchResult> withServers(BenchmarkOptions benchmarkOptions, ComparisonPart part)
            throws IOException, InterruptedException {
        long hostBytes = benchmarkOptions.limitHostBytes(HOST_BYTES);
        try (ServerProcess redis = ServerProcess.startRedis(hostBytes);
                ServerProcess ours = ServerProcess.startCurrent(hostBytes)) {
            return part.compare(new ServerComparison(ours, redis, benchmarkOptions));
        }
    }

    private List<BenchResult> compareSmall(ServerComparison serverComparison) throws IOException {
        List<BenchResult> answers = new ArrayList<>();
        for (int bytes : SMALL_SIZES) {
            for (ServerProcess each : List.of(serverComparison.ours(), serverComparison.theirs())) {
                ValueClient.fill(each.port(), bytes, SMALL_KEYS);
            }
            warmUp(bytes, serverComparison);
            for (PipelineSpec pipeline : PIPELINES) {
                for (boolean write : List.of(true, false)) {
                    answers.add(smallResult(pipeline, write, bytes, serverComparison));
                }
            }
        }
        return answers;
    }

    private BenchResult smallResult(PipelineSpec pipeline, boolean write, int bytes, ServerComparison serverComparison)
            throws IOException {
        BenchmarkOptions benchmarkOptions = serverComparison.options();
        ToolLoad load = pipeline.load(write, bytes).within(benchmarkOptions.time());
        // The runs are short, so their medians need seven rounds where others have five.
        int count = Math.max(1, benchmarkOptions.count() * 7 / 5);
        return compare(load, count, serverComparison, perSecond -> perSecond / 1e3)
                .speed()
                .toResult(
                        new MetricSpec(load.name(), "How many " + load.text() + " a second?", "thousand"),
                        serverComparison.theirs().name(),
                        pipeline.threshold(write));
    }

    /// Puts the loads of a size on both servers. Ours takes some seconds to compile what it does most.
    private void warmUp(int bytes, ServerComparison serverComparison) throws IOException {
        serverComparison.options().report("warming both by redis-benchmark");
        for (PipelineSpec pipeline : PIPELINES) {
            for (boolean write : List.of(true, false)) {
                ToolLoad load = pipeline.load(write, bytes)
                        .within(serverComparison.options().time().multipliedBy(2));
                tool.run(load, serverComparison.ours());
                tool.run(load, serverComparison.theirs());
            }
        }
    }

    private List<BenchResult> compareLarge(ServerComparison serverComparison) throws IOException, InterruptedException {
        serverComparison.warmUp();
        List<LargeResult> results = new ArrayList<>();
        for (int bytes : LARGE_SIZES) {
            serverComparison.fill(new ServerLoadSpec(true, bytes, 1));
            for (boolean write : List.of(false, true)) {
                for (int connections : LARGE_CONNECTIONS) {
                    results.add(largeResult(new ServerLoadSpec(write, bytes, connections), serverComparison));
                }
            }
        }
        List<BenchResult> answers = new ArrayList<>();
        results.forEach(result -> answers.add(result.speed()));
        answers.addAll(means(
                results.stream().filter(LargeResult::hasBudget).toList(),
                serverComparison.theirs().name()));
        return answers;
    }

    private LargeResult largeResult(ServerLoadSpec values, ServerComparison serverComparison) throws IOException {
        BenchmarkOptions benchmarkOptions = serverComparison.options();
        ToolLoad load = ToolLoad.ofLarge(values).within(benchmarkOptions.time());
        LoadRounds rounds = compare(
                load, benchmarkOptions.count(), serverComparison, perSecond -> perSecond * values.bytes() / 1e9);
        BenchResult speed = rounds.speed()
                .toResult(
                        new MetricSpec(load.name(), "How fast is " + load.text() + "?", "GB/s"),
                        serverComparison.theirs().name(),
                        values.bytes() <= MAX_BUDGET_BYTES ? LARGE : new Threshold.NoThreshold());
        return new LargeResult(values, speed, rounds.ownSeconds(), rounds.theirSeconds());
    }

    private static List<BenchResult> means(List<LargeResult> results, String theirs) {
        PairedSamples speed = new PairedSamples();
        speed.add(
                PairedSamples.geometricMean(
                        results.stream().map(result -> result.speed().ratio()).toList()),
                1);
        PairedSamples processor = new PairedSamples();
        processor.add(
                PairedSamples.geometricMean(
                        results.stream().map(LargeResult::ownSeconds).toList()),
                PairedSamples.geometricMean(
                        results.stream().map(LargeResult::theirSeconds).toList()));
        return List.of(
                speed.toResult(
                        new MetricSpec("newcomer-mean", "What is that on average up to 4 MiB, of Redis?", "times"),
                        theirs,
                        LARGE_MEAN),
                processor.toResult(
                        new MetricSpec("newcomer-cpu", "How much processor time does the server take for it?", "s/GB"),
                        theirs,
                        PROCESSOR_MEAN));
    }

    /// Runs a load on both servers in turn, each first in every second round, once before that unmeasured.
    ///
    /// @param unit makes the samples' unit of requests a second
    private LoadRounds compare(ToolLoad load, int count, ServerComparison serverComparison, DoubleUnaryOperator unit)
            throws IOException {
        serverComparison.options().report("redis-benchmark: " + load.text());
        tool.run(load, serverComparison.ours());
        tool.run(load, serverComparison.theirs());
        LoadRounds rounds = new LoadRounds(new PairedSamples(), new ArrayList<>(), new ArrayList<>());
        for (int round = 0; round < count; round++) {
            boolean oursFirst = round % 2 == 0;
            ToolRun early = tool.run(load, oursFirst ? serverComparison.ours() : serverComparison.theirs());
            ToolRun late = tool.run(load, oursFirst ? serverComparison.theirs() : serverComparison.ours());
            ToolRun own = oursFirst ? early : late;
            ToolRun other = oursFirst ? late : early;
            rounds.speed().add(unit.applyAsDouble(own.perSecond()), unit.applyAsDouble(other.perSecond()));
            rounds.own().add(own);
            rounds.theirs().add(other);
        }
        return rounds;
    }

    /// A part of the loads, on servers that were just started.
    @FunctionalInterface
    private interface ComparisonPart {

        List<BenchResult> compare(ServerComparison serverComparison) throws IOException, InterruptedException;
    }

    /// Requests that a connection sends at once, and what is expected of them.
    ///
    /// @param depth requests at once
    /// @param requests of a run, half a second to a second
    /// @param setRatio least ratio to Redis of SET
    /// @param getRatio least ratio to Redis of GET
    private record PipelineSpec(int depth, int requests, double setRatio, double getRatio) {

        ToolLoad load(boolean write, int bytes) {
            ServerLoadSpec values = new ServerLoadSpec(write, bytes, SMALL_CONNECTIONS);
            return new ToolLoad(
                    "newcomer-" + values.operation() + "-" + values.shortSize() + "-p" + depth,
                    values.describe() + " in pipelines of " + depth,
                    values,
                    SMALL_KEYS,
                    depth,
                    requests);
        }

        Threshold threshold(boolean write) {
            return new Threshold.RatioAtLeast(write ? setRatio : getRatio);
        }
    }

    /// A run of redis-benchmark.
    ///
    /// @param name short, for a table and for records
    /// @param text in words
    /// @param keys random ones of so many
    /// @param pipeline requests that a connection sends at once
    /// @param requests of all connections together
    private record ToolLoad(String name, String text, ServerLoadSpec values, int keys, int pipeline, long requests) {

        /// Bytes of values that a run of large ones moves: a second or less.
        private static final int LARGE_RUN_BYTES = 1 << 30;

        /// The least number of requests: one for each of eight connections.
        private static final int MIN_REQUESTS = 8;

        static ToolLoad ofLarge(ServerLoadSpec values) {
            return new ToolLoad(
                    "newcomer-" + values.name(),
                    values.describe(),
                    values,
                    values.keyCount(),
                    1,
                    LARGE_RUN_BYTES / values.bytes());
        }

        /// Returns as much of this load as fits a time, where all of it is for a second.
        ToolLoad within(Duration time) {
            long fitting = requests * time.toMillis() / 1000;
            return new ToolLoad(name, text, values, keys, pipeline, Math.max(MIN_REQUESTS, fitting));
        }

        long bytes() {
            return requests * values.bytes();
        }
    }

    /// What a run of redis-benchmark found.
    ///
    /// @param perSecond requests
    /// @param processorTime that the server took, all threads together
    /// @param bytes of values that it moved
    private record ToolRun(double perSecond, Duration processorTime, long bytes) {}

    /// The answer for a load of large values.
    ///
    /// @param ownSeconds processor time of our server for each 10^9 bytes
    /// @param theirSeconds likewise of Redis
    private record LargeResult(ServerLoadSpec values, BenchResult speed, double ownSeconds, double theirSeconds) {

        boolean hasBudget() {
            return values.bytes() <= MAX_BUDGET_BYTES;
        }
    }

    /// The runs of a load on both servers.
    ///
    /// @param speed in its unit
    private record LoadRounds(PairedSamples speed, List<ToolRun> own, List<ToolRun> theirs) {

        /// The kernel counts a process's time in hundredths of a second.
        private static final double CLOCK_TICK_SECONDS = 0.01;

        double ownSeconds() {
            return secondsPerGigabyte(own);
        }

        double theirSeconds() {
            return secondsPerGigabyte(theirs);
        }

        /// Processor seconds of all rounds, at least a tick, as a round takes few.
        private static double secondsPerGigabyte(List<ToolRun> runs) {
            double seconds = runs.stream()
                    .mapToDouble(run -> run.processorTime().toNanos() / 1e9)
                    .sum();
            double gigabytes = runs.stream().mapToLong(ToolRun::bytes).sum() / 1e9;
            return Math.max(CLOCK_TICK_SECONDS, seconds) / gigabytes;
        }
    }

    /// Debian's redis-benchmark.
    private record RedisBenchmarkTool(Path program) {

        /// It waits forever for a server that has ended.
        private static final Duration TIMEOUT = Duration.ofSeconds(60);

        void requireInstalled() throws IOException {
            if (!Files.isExecutable(program)) {
                throw new IOException(program + " is not installed; apt-get install redis-tools");
            }
        }

        /// Puts a load on a server once.
        ///
        /// @throws IOException when it does not end, or prints something else than is known
        ToolRun run(ToolLoad load, ServerProcess server) throws IOException {
            Duration before = server.processorTime();
            ProcessBuilder command = new ProcessBuilder(command(load, server.port())).redirectErrorStream(true);
            ProcessOutput output = ProcessRunner.run(TIMEOUT, command);
            if (!output.isFinished()) {
                throw new IOException(program + " did not end within " + TIMEOUT.toSeconds() + " s at " + server.name()
                        + ", " + load.text());
            }
            double perSecond = requestsPerSecond(load.values().operation(), output.text());
            return new ToolRun(perSecond, server.processorTime().minus(before), load.bytes());
        }

        private List<String> command(ToolLoad load, int port) {
            return List.of(
                    program.toString(),
                    "-p",
                    Integer.toString(port),
                    "-t",
                    load.values().operation(),
                    "-d",
                    Integer.toString(load.values().bytes()),
                    "-r",
                    Integer.toString(load.keys()),
                    "-c",
                    Integer.toString(load.values().connections()),
                    "-P",
                    Integer.toString(load.pipeline()),
                    "-n",
                    Long.toString(load.requests()),
                    "--csv");
        }

        private double requestsPerSecond(String operation, String text) throws IOException {
            String wanted = '"' + operation.toUpperCase(Locale.ROOT) + '"';
            for (String line : text.split("\n", -1)) {
                String[] fields = line.split(",", -1);
                if (fields.length > 1 && fields[0].equals(wanted)) {
                    return Double.parseDouble(fields[1].replace("\"", ""));
                }
            }
            throw new IOException(program + " printed no line for " + operation + ": " + text);
        }
    }
}
