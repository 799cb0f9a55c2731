package io.kvcache.bench.suite;

import io.kvcache.bench.Median;
import io.kvcache.bench.disk.DiskBenchDirs;
import io.kvcache.bench.disk.DiskBenchFixture;
import io.kvcache.bench.disk.DiskBenchFixture.DiskRunLength;
import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import io.kvcache.bench.suite.JmhRunner.JmhSample;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/// Runs a suite in rounds, each benchmark and each trial once a round, and takes medians over the rounds.
///
/// So a question and what it is held against are measured minutes apart at most, again and again, and a
/// ratio is one of two numbers from the same round.
public final class SuiteRunner {

    private final RunLength runLength;
    private final Consumer<String> progress;

    /// @param progress told what is about to run
    public SuiteRunner(RunLength runLength, Consumer<String> progress) {
        this.runLength = runLength;
        this.progress = progress;
    }

    /// Answers every question of a suite that needs no files.
    ///
    /// @throws IllegalStateException when a benchmark fails
    public List<BenchResult> run(BenchmarkSuite suite) {
        BenchmarkSamples benchmarkSamples = new BenchmarkSamples();
        JmhRunner jmh = new JmhRunner(runLength);
        for (MetricSource.RoundsMetric measure : suite.roundsMetrics()) {
            progress.accept(measure.name());
            benchmarkSamples.add(measure, measure.rounds().apply(runLength));
        }
        for (int round = 1; round <= runLength.rounds(); round++) {
            for (JmhRun jmhRun : suite.jmhRuns()) {
                progress.accept("round " + round + " of " + runLength.rounds() + ": " + jmhRun.describe());
                benchmarkSamples.add(jmhRun, jmh.run(jmhRun));
            }
        }
        return results(suite, benchmarkSamples);
    }

    /// Answers every question of a suite that moves bytes through files.
    ///
    /// @throws IOException when a file or fio fails
    public List<BenchResult> run(BenchmarkSuite suite, DiskBenchDirs places) throws IOException {
        BenchmarkSamples benchmarkSamples = new BenchmarkSamples();
        DiskRunLength disk = runLength.disk();
        progress.accept("writing the files");
        try (DiskBenchFixture bench = DiskBenchFixture.open(places.retainOnly(suite.media()), disk)) {
            for (int round = 1; round <= disk.memoryRounds(); round++) {
                runRound(round, suite.diskRuns(), bench, benchmarkSamples);
            }
        }
        return results(suite, benchmarkSamples);
    }

    private void runRound(int round, Set<DiskRun> trials, DiskBenchFixture bench, BenchmarkSamples benchmarkSamples)
            throws IOException {
        for (DiskRun diskRun : trials) {
            int rounds = runLength.disk().rounds(diskRun.place());
            if (round <= rounds) {
                progress.accept("round " + round + " of " + rounds + ": " + diskRun.describe());
                benchmarkSamples.add(diskRun, bench.run(diskRun));
            }
        }
    }

    private static List<BenchResult> results(BenchmarkSuite suite, BenchmarkSamples benchmarkSamples) {
        return suite.specs().stream().map(benchmarkSamples::toResult).toList();
    }

    /// How long a suite takes its time.
    ///
    /// @param rounds times that everything is run, one benchmark after the other; an odd number has a median
    /// @param iterations measured ones of a fork
    /// @param iterationMillis length of each, and of the ones before that warm up
    /// @param disk the same for trials of the disk suite
    public record RunLength(int rounds, int iterations, int iterationMillis, DiskRunLength disk) {

        /// Enough for figures that go into a document.
        public static final RunLength FULL = new RunLength(3, 6, 400, DiskRunLength.FULL);

        /// Enough to see that something has gone wrong.
        public static final RunLength QUICK = new RunLength(1, 3, 200, DiskRunLength.QUICK);
    }

    /// The samples of a suite so far, and their results.
    static final class BenchmarkSamples {

        private static final double[] NONE = {};

        private final Map<JmhRun, List<JmhSample>> samples = new HashMap<>();
        private final Map<DiskRun, List<TransferResult>> traffic = new HashMap<>();

        private final Map<MetricSource.RoundsMetric, double[]> measured = new HashMap<>();

        void add(MetricSource.RoundsMetric measure, double[] numbers) {
            measured.put(measure, numbers);
        }

        void add(JmhRun jmhRun, JmhSample sample) {
            samples.computeIfAbsent(jmhRun, _ -> new ArrayList<>()).add(sample);
        }

        void add(DiskRun diskRun, TransferResult moved) {
            traffic.computeIfAbsent(diskRun, _ -> new ArrayList<>()).add(moved);
        }

        /// Medians over the rounds, and of the ratio the median of each round's.
        BenchResult toResult(BenchmarkSpec benchmarkSpec) {
            double[] values = readSource(benchmarkSpec.source());
            double[] against = readSource(benchmarkSpec.reference());
            int rounds = Math.max(values.length, against.length);
            double[] ratios = IntStream.range(0, rounds)
                    .mapToDouble(round -> ratio(of(values, round), of(against, round)))
                    .toArray();
            return new BenchResult(
                    benchmarkSpec,
                    Median.of(values),
                    Median.of(against),
                    Median.of(ratios),
                    rounds,
                    path(benchmarkSpec.source()));
        }

        private static double ratio(double value, double against) {
            return against == 0 ? 0 : value / against;
        }

        /// A count is the same in every round.
        private static double of(double[] numbers, int round) {
            return numbers[numbers.length == 1 ? 0 : round];
        }

        private double[] readSource(MetricSource metricSource) {
            return switch (metricSource) {
                case MetricSource.JmhMetric jmhMetric ->
                    samples.getOrDefault(jmhMetric.fork(), List.of()).stream()
                            .mapToDouble(jmhMetric.reading())
                            .toArray();
                case MetricSource.TransferMetric transferMetric ->
                    traffic.getOrDefault(transferMetric.trial(), List.of()).stream()
                            .mapToDouble(transferMetric.reading())
                            .toArray();
                case MetricSource.RoundsMetric roundsMetric -> measured.getOrDefault(roundsMetric, NONE);
                case MetricSource.ConstantMetric constantMetric ->
                    new double[] {constantMetric.count().getAsDouble()};
            };
        }

        /// The path may change while it runs, as when memory gets short; all of them are said.
        private String path(MetricSource metricSource) {
            return metricSource instanceof MetricSource.TransferMetric transferMetric
                    ? String.join(
                            " / ",
                            traffic.getOrDefault(transferMetric.trial(), List.of()).stream()
                                    .map(TransferResult::path)
                                    .distinct()
                                    .toList())
                    : "";
        }
    }
}
