package io.kvcache.bench.server;

import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// The loads of [GetSetBenchmark] by redis-benchmark, whose only thread takes half of a machine with two cores.
final class RedisToolBenchmark implements ServerBenchmark {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 2, 8);
    private static final long HOST_BYTES = 2L << 30;
    private static final Threshold MEAN = new Threshold.RatioAtLeast(0.9);

    @Override
    public String name() {
        return "tool";
    }

    @Override
    public String title() {
        return "GET and SET by redis-benchmark beside redis-server";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        try (ServerProcess redis = ServerProcess.startRedis(HOST_BYTES);
                ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES)) {
            ServerComparison serverComparison = new ServerComparison(ours, redis, benchmarkOptions);
            serverComparison.warmUp();
            List<BenchResult> answers = new ArrayList<>();
            for (int bytes : SIZES) {
                serverComparison.fill(new ServerLoadSpec(true, bytes, 1));
                for (boolean write : List.of(false, true)) {
                    for (int connections : CONNECTIONS) {
                        answers.add(cell(new ServerLoadSpec(write, bytes, connections), serverComparison));
                    }
                }
            }
            PairedSamples mean = new PairedSamples();
            mean.add(
                    PairedSamples.geometricMean(
                            answers.stream().map(BenchResult::ratio).toList()),
                    1);
            answers.add(mean.toResult(
                    new MetricSpec("tool-mean", "What is that on average, of Redis?", "times"), "Redis", MEAN));
            return answers;
        }
    }

    private static BenchResult cell(ServerLoadSpec load, ServerComparison serverComparison) throws IOException {
        BenchmarkOptions benchmarkOptions = serverComparison.options();
        benchmarkOptions.report("redis-benchmark: " + load.describe());
        PairedSamples speed = new PairedSamples();
        for (int round = 0; round < benchmarkOptions.count(); round++) {
            double own = RedisBenchmarkTool.requestsPerSecond(
                    load, serverComparison.ours().port());
            double other = RedisBenchmarkTool.requestsPerSecond(
                    load, serverComparison.theirs().port());
            speed.add(own * load.bytes() / 1e9, other * load.bytes() / 1e9);
        }
        return speed.toResult(
                new MetricSpec("tool-" + load.name(), "How fast is " + load.describe() + "?", "GB/s"),
                serverComparison.theirs().name(),
                new Threshold.NoThreshold());
    }

    /// Runs Debian's redis-benchmark.
    private static final class RedisBenchmarkTool {

        /// Bytes of values that one run moves: a second or less.
        private static final long RUN_BYTES = 1L << 30;

        /// The least number of requests. For the largest values they move more than [#RUN_BYTES].
        private static final long MIN_REQUESTS = 32;
        private static final Duration TIMEOUT = Duration.ofSeconds(60);

        private RedisBenchmarkTool() {}

        /// Requests a second of a load.
        ///
        /// @throws IOException when it is not installed, does not end, or prints something else than is known
        static double requestsPerSecond(ServerLoadSpec load, int port) throws IOException {
            String test = load.write() ? "set" : "get";
            List<String> command = List.of(
                    "redis-benchmark",
                    "-p",
                    Integer.toString(port),
                    "-t",
                    test,
                    "-d",
                    Integer.toString(load.bytes()),
                    "-r",
                    Integer.toString(load.keyCount()),
                    "-c",
                    Integer.toString(load.connections()),
                    "-n",
                    Long.toString(Math.max(MIN_REQUESTS, RUN_BYTES / load.bytes())),
                    "--csv");
            ProcessOutput output = ProcessRunner.run(TIMEOUT, command);
            if (!output.isFinished()) {
                throw new IOException("redis-benchmark did not end within " + TIMEOUT.toSeconds() + " s");
            }
            String text = output.text();
            String wanted = '"' + test.toUpperCase(Locale.ROOT) + '"';
            for (String line : text.split("\n", -1)) {
                String[] fields = line.split(",", -1);
                if (fields.length > 1 && fields[0].equals(wanted)) {
                    return Double.parseDouble(fields[1].replace("\"", ""));
                }
            }
            throw new IOException("redis-benchmark printed no line for " + test + ": " + text);
        }
    }
}
