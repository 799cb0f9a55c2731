package io.kvcache.bench.server;

import io.kvcache.bench.server.LoadGenerator.LoadResult;
import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.function.ToDoubleFunction;

/// Two servers that get the same loads in turn, round by round.
///
/// @param theirs what ours is held against
record ServerComparison(ServerProcess ours, ServerProcess theirs, BenchmarkOptions options) {

    private static final List<Integer> WARMUP_SIZES = List.of(64 << 10, 1 << 20);

    /// Lets both come to speed: a JVM takes some seconds to compile what it does most.
    void warmUp() throws IOException, InterruptedException {
        options.report("warming both");
        Duration time = options.time().multipliedBy(2);
        for (ServerProcess each : List.of(ours, theirs)) {
            for (int bytes : WARMUP_SIZES) {
                ServerLoadSpec load = new ServerLoadSpec(true, bytes, 2);
                load.fillKeys(each.port());
                load.toGenerator(each.port()).run(time);
                new ServerLoadSpec(false, bytes, 2).toGenerator(each.port()).run(time);
            }
        }
    }

    /// Stores every key of a load once.
    void fill(ServerLoadSpec load) throws IOException {
        load.fillKeys(ours.port());
        load.fillKeys(theirs.port());
    }

    /// Adds bandwidth and p99 to the answers, and answers the bandwidth.
    BenchResult compareSpeed(ServerLoadSpec load, Threshold threshold, List<BenchResult> answers)
            throws IOException, InterruptedException {
        options.report(load.describe());
        PairedSamples speed = new PairedSamples();
        PairedSamples latency = new PairedSamples();
        for (int round = 0; round < options.count(); round++) {
            LoadResult own = load.toGenerator(ours.port()).run(options.time());
            LoadResult other = load.toGenerator(theirs.port()).run(options.time());
            speed.add(own.gigabytesPerSecond(load.bytes()), other.gigabytesPerSecond(load.bytes()));
            latency.add(own.p99Micros(), other.p99Micros());
        }
        MetricSpec fast = new MetricSpec(load.name(), "How fast is " + load.describe() + "?", "GB/s");
        MetricSpec slowest = new MetricSpec(load.name() + "-p99", "And how long do 99 of 100 take at most?", "us");
        BenchResult benchResult = speed.toResult(fast, theirs.name(), threshold);
        answers.add(benchResult);
        answers.add(latency.toResult(slowest, theirs.name(), new Threshold.NoThreshold()));
        return benchResult;
    }

    /// Puts a load on each, once unmeasured so that both come to speed.
    PairedSamples compareLoads(
            String words, LoadGenerator own, LoadGenerator other, ToDoubleFunction<LoadResult> reading)
            throws IOException, InterruptedException {
        options.report(words);
        own.run(options.time().multipliedBy(2));
        other.run(options.time().multipliedBy(2));
        PairedSamples pairedSamples = new PairedSamples();
        for (int round = 0; round < options.count(); round++) {
            double value = reading.applyAsDouble(own.run(options.time()));
            pairedSamples.add(value, reading.applyAsDouble(other.run(options.time())));
        }
        return pairedSamples;
    }
}
