package io.kvcache.tiers.movement;

/// How long reads of a tier take, from those of the last while: a fixed time for each run of reads, and a
/// time for each byte.
///
/// A run lasts from the first read after a pause to the last one that was under way with others, or
/// until it has [#LONGEST_RUN] reads. A line is laid through the times of the runs over their
/// bytes, by least squares; older runs count for less and less.
///
/// **Threads.** Written by the mover's thread; [#nanos] by any.
final class ReadPace {

    /// Runs before anything is said.
    private static final int FEWEST_RUNS = 4;

    private static final int LONGEST_RUN = 64;

    /// What is kept of all before when a run is added: the last 32 runs count for two thirds.
    private static final double KEEP = 1 - 1.0 / 32;

    private volatile Line line = new Line(0, 0);
    private long runBegan;
    private long runBytes;
    private int runReads;
    private int seen;
    private double runs;
    private double bytes;
    private double squares;
    private double nanos;
    private double products;

    /// @param fixedNanos for a run
    /// @param nanosPerByte beside
    private record Line(double fixedNanos, double nanosPerByte) {}

    /// A read is handed to the tier.
    ///
    /// @param others that are under way
    void begins(int others, long nowNanos) {
        if (others == 0) {
            begin(nowNanos);
        }
    }

    /// A read has ended well.
    ///
    /// @param others that are still under way
    void ended(long readBytes, int others, long nowNanos) {
        runBytes += readBytes;
        runReads++;
        if (others == 0 || runReads == LONGEST_RUN) {
            learn((double) (nowNanos - runBegan));
            begin(nowNanos);
        }
    }

    private void begin(long nowNanos) {
        runBegan = nowNanos;
        runBytes = 0;
        runReads = 0;
    }

    private void learn(double runNanos) {
        double size = (double) runBytes;
        runs = KEEP * runs + 1;
        bytes = KEEP * bytes + size;
        squares = KEEP * squares + size * size;
        nanos = KEEP * nanos + runNanos;
        products = KEEP * products + size * runNanos;
        if (++seen >= FEWEST_RUNS) {
            line = fitted();
        }
    }

    /// When the runs are of one size, or the line would begin below nothing, all time counts by bytes.
    private Line fitted() {
        double spread = runs * squares - bytes * bytes;
        double slope = spread > 1e-6 * bytes * bytes ? (runs * products - bytes * nanos) / spread : -1;
        double fixed = (nanos - slope * bytes) / runs;
        return slope > 0 && fixed >= 0 ? new Line(fixed, slope) : new Line(0, nanos / bytes);
    }

    /// How long reading so many bytes takes from the first to the last, 0 while nothing is known.
    double nanos(long readBytes) {
        Line known = line;
        return known.fixedNanos + known.nanosPerByte * readBytes;
    }
}
