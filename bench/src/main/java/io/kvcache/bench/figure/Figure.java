package io.kvcache.bench.figure;

import io.kvcache.planner.Median;
import java.util.List;
import java.util.function.ToDoubleFunction;

/// A figure of a benchmark: the median over the rounds of a run, beside a reference that was measured in the same
/// rounds.
///
/// @param name as [FigureBudgets] and `--filter` know it
/// @param unit of the value and of the reference
/// @param against what the reference is of; `-` where there is none
/// @param ratio median of the rounds' own ratios of value to reference; 0 without a reference
/// @param rounds how many values the median is of
public record Figure(
        String name, String unit, double value, String against, double reference, double ratio, int rounds) {

    private static final String NOTHING = "-";

    /// A figure without a reference.
    ///
    /// @param values one a round, at least one
    public static Figure of(String name, String unit, double... values) {
        return new Figure(name, unit, Median.of(values), NOTHING, 0, 0, values.length);
    }

    /// A figure beside a reference.
    ///
    /// @param values one a round, at least one
    /// @param references one a round; a single one stands beside every round
    public static Figure of(String name, String unit, double[] values, String against, double[] references) {
        double[] ratios = new double[values.length];
        for (int round = 0; round < values.length; round++) {
            double reference = references[references.length == 1 ? 0 : round];
            ratios[round] = reference == 0 ? 0 : values[round] / reference;
        }
        return new Figure(
                name, unit, Median.of(values), against, Median.of(references), Median.of(ratios), values.length);
    }

    /// One figure of each round's result.
    public static <R> Figure of(String name, String unit, List<R> rounds, ToDoubleFunction<R> value) {
        return of(name, unit, rounds.stream().mapToDouble(value).toArray());
    }

    /// One figure of each round's result, beside another one.
    public static <R> Figure of(
            String name,
            String unit,
            List<R> rounds,
            ToDoubleFunction<R> value,
            String against,
            ToDoubleFunction<R> reference) {
        return of(
                name,
                unit,
                rounds.stream().mapToDouble(value).toArray(),
                against,
                rounds.stream().mapToDouble(reference).toArray());
    }

    /// Returns whether a reference was measured in the same rounds.
    public boolean hasReference() {
        return !against.equals(NOTHING);
    }

    /// The geometric mean of figures' ratios, as a figure.
    public static Figure meanRatio(String name, String against, List<Figure> figures) {
        return of(name, "times", new double[] {geometricMean(figures, Figure::ratio)}, against, new double[] {1});
    }

    /// Returns the geometric mean, as ratios are averaged; 1 of none.
    public static <T> double geometricMean(List<T> of, ToDoubleFunction<T> ratio) {
        return Math.exp(of.stream().mapToDouble(ratio).map(Math::log).average().orElse(0));
    }
}
