package io.kvcache.bench.suite;

import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// What the runs of a suite have given so far, and the answers that follow.
final class BenchmarkSamples {

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
                benchmarkSpec, median(values), median(against), median(ratios), rounds, path(benchmarkSpec.source()));
    }

    private static double ratio(double value, double against) {
        return against == 0 ? 0 : value / against;
    }

    /// What was counted is the same in every round.
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

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
