package io.kvcache.bench.server;

import io.kvcache.bench.server.BaselineServer.BaselineClient;
import io.kvcache.bench.server.LoadGenerator.LoadResult;
import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.util.List;
import java.util.function.ToDoubleFunction;

/// GET beside a [BaselineServer], over one connection: what protocol, look-up and pins cost.
final class BaselineGetBenchmark implements ServerBenchmark {

    private static final int LARGE = 1 << 20;
    private static final int SMALL = 64 << 10;
    private static final long HOST_BYTES = 2L << 30;
    private static final MetricSpec SPEED = new MetricSpec("bare-get-1m", "How fast is GET of 1 MiB?", "GB/s");
    private static final MetricSpec LATENCY =
            new MetricSpec("bare-get-64k-p50", "How long do half of the GETs of 64 KiB take at most?", "us");

    @Override
    public String name() {
        return "responder";
    }

    @Override
    public String title() {
        return "GET beside a server that does nothing but send";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        try (ServerProcess bare = ServerProcess.startBaseline();
                ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES)) {
            PairedSamples speed = compare(
                    LARGE,
                    new ServerComparison(ours, bare, benchmarkOptions),
                    result -> result.gigabytesPerSecond(LARGE));
            PairedSamples latency =
                    compare(SMALL, new ServerComparison(ours, bare, benchmarkOptions), LoadResult::p50Micros);
            return List.of(
                    speed.toResult(SPEED, bare.name(), new Threshold.RatioAtLeast(0.85)),
                    latency.toResult(LATENCY, bare.name(), new Threshold.RatioAtMost(1.2)));
        }
    }

    private static PairedSamples compare(
            int bytes, ServerComparison serverComparison, ToDoubleFunction<LoadResult> reading)
            throws IOException, InterruptedException {
        ServerLoadSpec load = new ServerLoadSpec(false, bytes, 1);
        load.fillKeys(serverComparison.ours().port());
        LoadGenerator own = load.toGenerator(serverComparison.ours().port());
        LoadGenerator bare = new LoadGenerator(
                port -> new BaselineClient(port, bytes),
                load.keyCount(),
                1,
                serverComparison.theirs().port());
        return serverComparison.compareLoads(load.describe(), own, bare, reading);
    }
}
