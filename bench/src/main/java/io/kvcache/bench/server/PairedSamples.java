package io.kvcache.bench.server;

import io.kvcache.bench.Median;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.MetricSource;
import io.kvcache.bench.suite.Threshold;
import java.util.ArrayList;
import java.util.List;

/// Numbers of ours, each with the number that it is held against in the same round.
public final class PairedSamples {

    private final List<Double> values = new ArrayList<>();
    private final List<Double> references = new ArrayList<>();
    private final List<Double> ratios = new ArrayList<>();

    /// Adds a number, and what it is held against.
    public void add(double value, double reference) {
        values.add(value);
        references.add(reference);
        ratios.add(reference == 0 ? 0 : value / reference);
    }

    /// Returns the medians.
    ///
    /// @param against what the reference is of
    public BenchResult toResult(MetricSpec metricSpec, String against, Threshold threshold) {
        double value = Median.of(values);
        double reference = Median.of(references);
        BenchmarkSpec benchmarkSpec = new BenchmarkSpec(
                metricSpec.name(),
                metricSpec.text(),
                metricSpec.unit(),
                new MetricSource.ConstantMetric("KVCache", () -> value),
                new MetricSource.ConstantMetric(against, () -> reference),
                threshold);
        return new BenchResult(benchmarkSpec, value, reference, Median.of(ratios), values.size(), "");
    }

    /// Returns the geometric mean, as ratios are averaged.
    static double geometricMean(List<Double> ratios) {
        return Math.exp(ratios.stream().mapToDouble(Math::log).average().orElse(0));
    }

    /// The question that a number answers.
    ///
    /// @param name short, for a table and for records
    /// @param text in words
    /// @param unit of the number and of what it is held against
    public record MetricSpec(String name, String text, String unit) {}
}
