package io.kvcache.core.policy;

import java.util.Arrays;

/// Uses and exposure by age, for rows of blocks that [ReuseModel] tells apart or together.
///
/// **Threads.** One writer, the holder of the store's lock.
final class ReuseCounts {

    private static final int BINS = AgeBins.COUNT;

    private double[] uses;
    private double[] exposure;
    /// Bins of each row up to the last that has anything, 0 for a row of which nothing was seen.
    private byte[] reach;

    ReuseCounts(int rows) {
        uses = new double[rows * BINS];
        exposure = new double[rows * BINS];
        reach = new byte[rows];
    }

    /// Makes room for more rows.
    void ensureRows(int rows) {
        uses = Arrays.copyOf(uses, rows * BINS);
        exposure = Arrays.copyOf(exposure, rows * BINS);
        reach = Arrays.copyOf(reach, rows);
    }

    /// A block of a row was used.
    void addUse(int row, int bin) {
        uses[row * BINS + bin]++;
        extendReach(row, bin);
    }

    /// Blocks of a row were not used for a while.
    ///
    /// @param blockTime blocks times time
    void addExposure(int row, int bin, double blockTime) {
        exposure[row * BINS + bin] += blockTime;
        extendReach(row, bin);
    }

    private void extendReach(int row, int bin) {
        if (bin >= reach[row]) {
            reach[row] = (byte) (bin + 1);
        }
    }

    double uses(int row, int bin) {
        return uses[row * BINS + bin];
    }

    double exposure(int row, int bin) {
        return exposure[row * BINS + bin];
    }

    int reach(int row) {
        return reach[row];
    }

    /// Takes rows over from another one.
    ///
    /// @param from the first of them there; the first one here is the first of all
    void copyFrom(ReuseCounts other, int from, int rows) {
        for (int row = 0; row < rows; row++) {
            int length = other.reach[from + row];
            System.arraycopy(other.uses, (from + row) * BINS, uses, row * BINS, length);
            System.arraycopy(other.exposure, (from + row) * BINS, exposure, row * BINS, length);
            reach[row] = (byte) length;
        }
    }

    /// Has each count weigh less.
    ///
    /// @param keep share of it that is kept
    void decay(double keep) {
        for (int row = 0; row < reach.length; row++) {
            decay(uses, row, keep);
            decay(exposure, row, keep);
        }
    }

    private void decay(double[] counts, int row, double keep) {
        int end = row * BINS + reach[row];
        for (int i = row * BINS; i < end; i++) {
            counts[i] *= keep;
        }
    }

    long bytes() {
        return (long) (uses.length + exposure.length) * Double.BYTES + reach.length;
    }
}
