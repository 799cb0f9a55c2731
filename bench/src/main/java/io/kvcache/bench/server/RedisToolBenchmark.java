package io.kvcache.bench.server;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

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

    private static BenchResult cell(ServerLoadSpec load, ServerComparison serverComparison)
            throws IOException, InterruptedException {
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
}
