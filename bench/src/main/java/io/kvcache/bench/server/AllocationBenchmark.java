package io.kvcache.bench.server;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// What a GET leaves on the server's heap, whatever the size of its value.
///
/// All threads of the server are counted, less what they allocate while nobody asks for anything.
final class AllocationBenchmark implements ServerBenchmark {

    private static final long HOST_BYTES = 2L << 30;
    private static final List<Integer> SIZES = List.of(4 << 10, 64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final Threshold THRESHOLD = new Threshold.AtMost(1024);

    @Override
    public String name() {
        return "allocation";
    }

    @Override
    public String title() {
        return "heap that a GET leaves behind";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        List<BenchResult> answers = new ArrayList<>();
        try (ServerProcess ours = ServerProcess.startCurrent(benchmarkOptions.limitHostBytes(HOST_BYTES));
                AllocationMeter meter = AllocationMeter.attach(ours.processId())) {
            for (int bytes : SIZES) {
                answers.add(measure(new ServerLoadSpec(false, bytes, 1), ours, meter, benchmarkOptions));
            }
        }
        return answers;
    }

    private static BenchResult measure(
            ServerLoadSpec load, ServerProcess ours, AllocationMeter meter, BenchmarkOptions benchmarkOptions)
            throws IOException, InterruptedException {
        benchmarkOptions.report("allocation of " + load.describe());
        load.fillKeys(ours.port());
        LoadGenerator gets = load.toGenerator(ours.port());
        gets.run(benchmarkOptions.time().multipliedBy(2)); // What is not compiled yet allocates what later is not.
        PairedSamples perGet = new PairedSamples();
        for (int round = 0; round < benchmarkOptions.count(); round++) {
            double idle = idle(meter, benchmarkOptions.time());
            long start = System.nanoTime();
            long before = meter.allocatedBytes();
            long count = gets.run(benchmarkOptions.time()).count();
            double seconds = (System.nanoTime() - start) / 1e9;
            perGet.add((meter.allocatedBytes() - before - idle * seconds) / count, 0);
        }
        MetricSpec metricSpec = new MetricSpec(
                load.name().replace("get-", "alloc-").replace("-1c", ""),
                "What does " + load.describe() + " leave on the heap?",
                "bytes");
        return perGet.toResult(metricSpec, "-", THRESHOLD);
    }

    /// Bytes a second while nobody asks for anything.
    private static double idle(AllocationMeter meter, Duration time) throws InterruptedException {
        long before = meter.allocatedBytes();
        Thread.sleep(time);
        return (meter.allocatedBytes() - before) / (time.toNanos() / 1e9);
    }
}
