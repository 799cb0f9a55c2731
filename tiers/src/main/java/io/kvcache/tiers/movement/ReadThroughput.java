package io.kvcache.tiers.movement;

/// How long reads of a tier take, from those of the last while: a fixed time for each run of reads, and a
/// time for each byte.
///
/// A run lasts from the first read after a pause to the last one that was under way with others, or
/// until it has [#MAX_RUN_READS] reads. A line is laid through the times of the runs over their
/// bytes, by least squares; older runs count for less and less.
///
/// **Threads.** Written by the tier worker's thread; [#estimateNanos] by any.
final class ReadThroughput {

    /// Runs before anything is said.
    private static final int MIN_RUNS = 4;

    private static final int MAX_RUN_READS = 64;

    /// Weight that earlier runs keep when a run is added: the last 32 runs count for two thirds.
    private static final double DECAY = 1 - 1.0 / 32;

    private volatile LinearModel model = new LinearModel(0, 0);
    private long runStartNanos;
    private long runBytes;
    private int runReads;
    private int runsSeen;
    private double runs;
    private double bytes;
    private double squares;
    private double nanos;
    private double products;

    /// @param fixedNanos for a run
    /// @param nanosPerByte beside
    private record LinearModel(double fixedNanos, double nanosPerByte) {}

    /// A read is handed to the tier.
    ///
    /// @param others that are under way
    void onReadStarted(int others, long nowNanos) {
        if (others == 0) {
            startRun(nowNanos);
        }
    }

    /// A read has ended well.
    ///
    /// @param others that are still under way
    void onReadEnded(long readBytes, int others, long nowNanos) {
        runBytes += readBytes;
        runReads++;
        if (others == 0 || runReads == MAX_RUN_READS) {
            addRun((double) (nowNanos - runStartNanos));
            startRun(nowNanos);
        }
    }

    private void startRun(long nowNanos) {
        runStartNanos = nowNanos;
        runBytes = 0;
        runReads = 0;
    }

    private void addRun(double runNanos) {
        double size = (double) runBytes;
        runs = DECAY * runs + 1;
        bytes = DECAY * bytes + size;
        squares = DECAY * squares + size * size;
        nanos = DECAY * nanos + runNanos;
        products = DECAY * products + size * runNanos;
        if (++runsSeen >= MIN_RUNS) {
            model = fitModel();
        }
    }

    /// When the runs are of one size, or the line would begin below nothing, all time counts by bytes.
    private LinearModel fitModel() {
        double spread = runs * squares - bytes * bytes;
        double slope = spread > 1e-6 * bytes * bytes ? (runs * products - bytes * nanos) / spread : -1;
        double fixed = (nanos - slope * bytes) / runs;
        return slope > 0 && fixed >= 0 ? new LinearModel(fixed, slope) : new LinearModel(0, nanos / bytes);
    }

    /// How long reading so many bytes takes from the first to the last, 0 while nothing is known.
    double estimateNanos(long readBytes) {
        LinearModel known = model;
        return known.fixedNanos + known.nanosPerByte * readBytes;
    }
}
