package io.kvcache.bench.server;

import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.util.List;

/// How long it takes from the start of the process to the first GET that is served, with 4 GiB of host memory (less in
/// quick rounds).
final class StartupBenchmark implements ServerBenchmark {

    private static final long HOST_BYTES = 4L << 30;
    private static final int VALUE_BYTES = 64 << 10;

    @Override
    public String name() {
        return "start";
    }

    @Override
    public String title() {
        return "from the start to the first GET";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        long hostBytes = benchmarkOptions.limitHostBytes(HOST_BYTES);
        String size = hostBytes < 1L << 30 ? (hostBytes >> 20) + " MiB" : (hostBytes >> 30) + " GiB";
        benchmarkOptions.report("starting with " + size);
        PairedSamples seconds = new PairedSamples();
        for (int round = 0; round < benchmarkOptions.count(); round++) {
            seconds.add(firstGet(hostBytes), 0);
        }
        MetricSpec metricSpec =
                new MetricSpec("start-get", "How long from the start to the first GET, with " + size + "?", "s");
        return List.of(seconds.toResult(metricSpec, "-", new Threshold.AtMost(1)));
    }

    private static double firstGet(long hostBytes) throws IOException, InterruptedException {
        long start = System.nanoTime();
        try (ServerProcess ours = ServerProcess.startCurrent(hostBytes);
                ValueClient client = new ValueClient(ours.port(), VALUE_BYTES, false)) {
            client.setValue(0, VALUE_BYTES);
            client.roundTrip(0);
            return (System.nanoTime() - start) / 1e9;
        }
    }
}
