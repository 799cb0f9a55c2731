package io.kvcache.bench.server;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Small requests, sixteen at once over each of two connections, beside redis-server.
final class PipelineBenchmark implements ServerBenchmark {

    private static final int KEYS = 10_000;
    private static final int CONNECTIONS = 2;
    private static final int VALUE_BYTES = 64;
    private static final long HOST_BYTES = 1L << 30;
    private static final Threshold EXISTS = new Threshold.RatioAtLeast(0.7);

    @Override
    public String name() {
        return "pipeline";
    }

    @Override
    public String title() {
        return "small requests, sixteen at once, beside redis-server";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        try (ServerProcess redis = ServerProcess.startRedis(HOST_BYTES);
                ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES)) {
            fill(redis);
            fill(ours);
            ServerComparison serverComparison = new ServerComparison(ours, redis, benchmarkOptions);
            List<BenchResult> answers = new ArrayList<>();
            for (PipelinedClient.SmallRequest request : PipelinedClient.SmallRequest.values()) {
                String name = request.name().toLowerCase(Locale.ROOT);
                PairedSamples rate = serverComparison.compareLoads(
                        "pipelined " + request,
                        load(request, ours),
                        load(request, redis),
                        result -> result.perSecond() * PipelinedClient.DEPTH / 1e3);
                answers.add(rate.toResult(
                        new MetricSpec("pipe-" + name, "How many pipelined " + request + " a second?", "thousand"),
                        redis.name(),
                        request == PipelinedClient.SmallRequest.EXISTS ? EXISTS : new Threshold.NoThreshold()));
            }
            return answers;
        }
    }

    private static LoadGenerator load(PipelinedClient.SmallRequest request, ServerProcess server) {
        return new LoadGenerator(port -> new PipelinedClient(port, request, KEYS), KEYS, CONNECTIONS, server.port());
    }

    private static void fill(ServerProcess server) throws IOException {
        try (ValueClient client = new ValueClient(server.port(), VALUE_BYTES, true)) {
            for (int key = 0; key < KEYS; key++) {
                client.roundTrip(key);
            }
        }
    }
}
