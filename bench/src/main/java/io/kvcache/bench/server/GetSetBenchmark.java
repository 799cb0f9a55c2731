package io.kvcache.bench.server;

import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/// GET and SET of four sizes over one, two and eight connections, beside redis-server.
final class GetSetBenchmark implements ServerBenchmark {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 2, 8);
    private static final Threshold CELL = new Threshold.RatioAtLeast(0.9);
    private static final Threshold MEAN_OF_GET = new Threshold.RatioAtLeast(1.3);
    private static final Threshold MEAN_OF_SET = new Threshold.RatioAtLeast(1.0);
    private static final long HOST_BYTES = 2L << 30;

    @Override
    public String name() {
        return "values";
    }

    @Override
    public String title() {
        return "GET and SET of 64 KiB to 32 MiB beside redis-server";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        try (ServerProcess redis = ServerProcess.startRedis(HOST_BYTES);
                ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES)) {
            ServerComparison serverComparison = new ServerComparison(ours, redis, benchmarkOptions);
            serverComparison.warmUp();
            return compare(serverComparison);
        }
    }

    private static List<BenchResult> compare(ServerComparison serverComparison)
            throws IOException, InterruptedException {
        List<BenchResult> answers = new ArrayList<>();
        List<Double> gets = new ArrayList<>();
        List<Double> sets = new ArrayList<>();
        for (int bytes : SIZES) {
            serverComparison.fill(new ServerLoadSpec(true, bytes, 1));
            for (boolean write : List.of(false, true)) {
                for (int connections : CONNECTIONS) {
                    ServerLoadSpec load = new ServerLoadSpec(write, bytes, connections);
                    BenchResult speed = serverComparison.compareSpeed(load, CELL, answers);
                    (write ? sets : gets).add(speed.ratio());
                }
            }
        }
        answers.add(mean("get-mean", "GET", gets, MEAN_OF_GET));
        answers.add(mean("set-mean", "SET", sets, MEAN_OF_SET));
        return answers;
    }

    private static BenchResult mean(String name, String operation, List<Double> ratios, Threshold threshold) {
        PairedSamples mean = new PairedSamples();
        mean.add(PairedSamples.geometricMean(ratios), 1);
        MetricSpec metricSpec =
                new MetricSpec(name, "What is that on average for " + operation + ", of Redis?", "times");
        return mean.toResult(metricSpec, "Redis", threshold);
    }
}
