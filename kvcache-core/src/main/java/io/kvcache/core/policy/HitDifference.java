package io.kvcache.core.policy;

import java.util.Arrays;

/// How many more hits one of two caches had lately than the other, and whether that can be chance.
///
/// A sliding window of [#PARTS] parts. The blocks of one request are found or lost together, so equal differences
/// in a row are no independent ones: the variance sums the square of each run of them.
///
/// **Threads.** As its owner's.
final class HitDifference {

    static final int PARTS = 8;

    /// Standard deviations of the difference that count as chance.
    private static final double CHANCE = 3;

    /// Longer runs of equal differences count as several.
    private static final int MAX_RUN = 64;

    private final long[] sums = new long[PARTS];
    private final long[] variances = new long[PARTS];
    private long sum;
    private long variance;
    private int run;
    private int part;

    /// A use that both caches found, or neither.
    void addEqual() {
        run = 0;
    }

    /// A use that one of them found.
    ///
    /// @param difference 1 or -1
    void add(int difference) {
        run = Integer.signum(run) == difference && Math.abs(run) < MAX_RUN ? run + difference : difference;
        int added = 2 * Math.abs(run) - 1;
        sums[part] += difference;
        variances[part] += added;
        sum += difference;
        variance += added;
    }

    /// Begins a part and forgets the oldest.
    void nextPart() {
        part = (part + 1) % PARTS;
        sum -= sums[part];
        variance -= variances[part];
        sums[part] = 0;
        variances[part] = 0;
    }

    /// Forgets all.
    void clear() {
        Arrays.fill(sums, 0);
        Arrays.fill(variances, 0);
        sum = 0;
        variance = 0;
    }

    /// Returns whether the sum of the differences is above a bound, and above chance.
    boolean isAbove(double bound) {
        return sum > bound && sum > CHANCE * Math.sqrt((double) variance);
    }

    /// Returns whether the sum of the differences is negative, by more than a standard deviation.
    boolean isNegative() {
        return sum < 0 && (double) sum * sum > variance;
    }
}
