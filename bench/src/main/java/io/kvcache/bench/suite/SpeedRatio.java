package io.kvcache.bench.suite;

import java.util.Arrays;
import java.util.List;
import java.util.Random;

/// How fast a new build is beside an old one in one cell: above 1 it is faster.
///
/// The interval is the bootstrap's of the median: the pairs are drawn again with replacement, ten thousand times, from
/// one seed. A pair that something else on the machine disturbed moves it little.
///
/// @param pairs measured
/// @param median of the pairs' ratios
/// @param low lower end of the interval that holds the median with 90 %
/// @param high upper end
public record SpeedRatio(String cell, int pairs, double median, double low, double high) {

    /// A cell is slower when its whole interval lies under this.
    public static final double MIN_MEDIAN = 0.97;

    /// The geometric mean of a suite must not be under this.
    public static final double MIN_MEAN = 0.99;

    private static final int DRAWS = 10_000;
    private static final double TAIL = 0.05;

    /// Rates a cell.
    ///
    /// @param ratios one a pair, at least one
    public static SpeedRatio of(String cell, List<Double> ratios) {
        double[] measured = ratios.stream().mapToDouble(Double::doubleValue).toArray();
        double[] medians = new double[DRAWS];
        double[] drawn = new double[measured.length];
        Random random = new Random(1);
        for (int draw = 0; draw < DRAWS; draw++) {
            for (int i = 0; i < drawn.length; i++) {
                drawn[i] = measured[random.nextInt(measured.length)];
            }
            medians[draw] = BenchmarkSamples.median(drawn);
        }
        Arrays.sort(medians);
        return new SpeedRatio(
                cell,
                measured.length,
                BenchmarkSamples.median(measured),
                medians[(int) (TAIL * DRAWS)],
                medians[(int) ((1 - TAIL) * DRAWS) - 1]);
    }

    /// Whether even the upper end of the interval is under [#MIN_MEDIAN].
    public boolean isSlower() {
        return high < MIN_MEDIAN;
    }

    /// The geometric mean of cells' medians; 1 when there are none.
    public static double geometricMean(List<SpeedRatio> cells) {
        return Math.exp(cells.stream()
                .mapToDouble(cell -> Math.log(cell.median()))
                .average()
                .orElse(0));
    }
}
