package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import io.kvcache.bench.suite.Measure;
import io.kvcache.bench.suite.Question;
import java.util.ArrayList;
import java.util.List;

/// Numbers of ours, each with the number that it is held against in the same round.
final class PairedSamples {

    private final List<Double> values = new ArrayList<>();
    private final List<Double> references = new ArrayList<>();
    private final List<Double> ratios = new ArrayList<>();

    void add(double value, double reference) {
        values.add(value);
        references.add(reference);
        ratios.add(reference == 0 ? 0 : value / reference);
    }

    /// The middle one of the rounds' ratios.
    double medianRatio() {
        return median(ratios);
    }

    /// @param against what the reference is of
    Answer toResult(MetricSpec metricSpec, String against, Budget threshold) {
        double value = median(values);
        double reference = median(references);
        Question benchmarkSpec = new Question(
                metricSpec.name(),
                metricSpec.text(),
                metricSpec.unit(),
                new Measure.Counted("KVCache", () -> value),
                new Measure.Counted(against, () -> reference),
                threshold);
        return new Answer(benchmarkSpec, value, reference, medianRatio(), values.size(), "");
    }

    private static double median(List<Double> numbers) {
        return numbers.stream().sorted().toList().get(numbers.size() / 2);
    }

    /// Of several ratios, as ratios are averaged.
    static double geometricMean(List<Double> ratios) {
        return Math.exp(ratios.stream().mapToDouble(Math::log).average().orElse(0));
    }
}
