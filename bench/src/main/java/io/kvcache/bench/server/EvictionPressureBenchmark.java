package io.kvcache.bench.server;

import io.kvcache.bench.server.LoadGenerator.BenchClient;
import io.kvcache.bench.server.LoadGenerator.LoadResult;
import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// The 99th percentile of latency while every SET must evict, beside redis-server.
///
/// Two connections SET keys at random out of four times as many as fit. One more connection GETs a few keys, which
/// stay resident since it uses them again and again.
final class EvictionPressureBenchmark implements ServerBenchmark {

    private static final long HOST_BYTES = 512L << 20;
    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final int OVERFULL = 4;
    private static final int HOT_KEYS = 8;

    /// Memory of the few hot keys: small, so that writers always find most of it.
    private static final long HOT_BYTES = HOST_BYTES / 8;

    /// From there on there are too few requests in a round's time for one of a hundred.
    private static final int LARGE = 32 << 20;

    private static final int LARGE_TIMES = 5;

    @Override
    public String name() {
        return "eviction";
    }

    @Override
    public String title() {
        return "latency while every SET evicts, beside redis-server";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        List<BenchResult> answers = new ArrayList<>();
        try (ServerProcess redis = ServerProcess.startRedis(HOST_BYTES);
                ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES)) {
            ServerComparison serverComparison = new ServerComparison(ours, redis, benchmarkOptions);
            for (int bytes : SIZES) {
                compare(bytes, serverComparison, answers);
            }
        }
        return answers;
    }

    private static void compare(int bytes, ServerComparison serverComparison, List<BenchResult> answers)
            throws IOException, InterruptedException {
        ServerLoadSpec load = new ServerLoadSpec(true, bytes, 2);
        serverComparison.options().report("evicting: " + load.describe());
        Duration time = serverComparison.options().time().multipliedBy(bytes < LARGE ? 1 : LARGE_TIMES);
        for (ServerProcess each : List.of(serverComparison.ours(), serverComparison.theirs())) {
            PressureResult.apply(each.port(), bytes, time);
        }
        PairedSamples sets = new PairedSamples();
        PairedSamples gets = new PairedSamples();
        for (int round = 0; round < serverComparison.options().count(); round++) {
            PressureResult own = PressureResult.apply(serverComparison.ours().port(), bytes, time);
            PressureResult other =
                    PressureResult.apply(serverComparison.theirs().port(), bytes, time);
            sets.add(own.sets().p99Micros(), other.sets().p99Micros());
            gets.add(own.gets().p99Micros(), other.gets().p99Micros());
        }
        String size = load.name().replace("set-", "").replace("-2c", "");
        answers.add(sets.toResult(
                new MetricSpec("evict-set-" + size + "-p99", "How long do 99 of 100 SETs take that evict?", "us"),
                serverComparison.theirs().name(),
                new Threshold.NoThreshold()));
        answers.add(gets.toResult(
                new MetricSpec("evict-get-" + size + "-p99", "And GETs meanwhile?", "us"),
                serverComparison.theirs().name(),
                new Threshold.NoThreshold()));
    }

    /// The latencies under eviction.
    private record PressureResult(LoadResult sets, LoadResult gets) {

        static PressureResult apply(int port, int bytes, Duration time) throws IOException, InterruptedException {
            int keys = OVERFULL * (int) (HOST_BYTES / bytes);
            int hot = (int) Math.min(HOT_KEYS, HOT_BYTES / bytes);
            LoadGenerator writers = new LoadGenerator(to -> new ValueClient(to, bytes, true), keys, 2, port);
            LoadGenerator readers = new LoadGenerator(to -> new HotReader(to, bytes, keys), hot, 1, port);
            writers.run(time); // Fills what is not full yet.
            try (ExecutorService beside = Executors.newSingleThreadExecutor()) {
                Future<LoadResult> gets = beside.submit(() -> readers.run(time));
                LoadResult sets = writers.run(time);
                return new PressureResult(sets, gets.get());
            } catch (ExecutionException failed) {
                throw new IOException("the reader failed: " + failed.getCause(), failed.getCause());
            }
        }
    }

    /// Gets keys that no other client writes, and sets the missing ones.
    private static final class HotReader implements BenchClient {

        private final ValueClient client;
        private final int bytes;
        private final int firstKey;

        HotReader(int port, int bytes, int firstKey) throws IOException {
            client = new ValueClient(port, bytes, false);
            this.bytes = bytes;
            this.firstKey = firstKey;
        }

        @Override
        public void roundTrip(int key) throws IOException {
            if (!client.getValue(firstKey + key)) {
                client.setValue(firstKey + key, bytes);
            }
        }

        @Override
        public void close() throws IOException {
            client.close();
        }
    }
}
