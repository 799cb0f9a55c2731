package io.kvcache.planner;

import java.util.Arrays;
import java.util.Collection;
import java.util.function.ToDoubleFunction;

/// The median: the middle of the sorted values, or the mean of the middle two. All measurements use this one.
public final class Median {

    private Median() {}

    /// Returns the median of at least one value.
    public static double of(double... values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /// Returns the median of at least one value.
    public static double of(Collection<Double> values) {
        return of(values, Double::doubleValue);
    }

    /// Returns the median of one figure of at least one result.
    public static <T> double of(Collection<T> results, ToDoubleFunction<? super T> figure) {
        return of(results.stream().mapToDouble(figure).toArray());
    }
}
