package io.kvcache.bench.stats;

import java.util.Arrays;
import java.util.Collection;
import java.util.function.ToDoubleFunction;

/// The median: the middle of the sorted values, or the mean of the middle two.
public final class Median {

    private Median() {}

    /// The middle of sorted values; of an even number, the mean of the middle two.
    ///
    /// @param values at least one
    public static double of(double... values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /// The median of one figure of several results, at least one.
    public static <T> double of(Collection<T> results, ToDoubleFunction<? super T> figure) {
        return of(results.stream().mapToDouble(figure).toArray());
    }
}
