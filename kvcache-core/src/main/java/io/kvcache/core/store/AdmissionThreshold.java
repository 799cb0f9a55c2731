package io.kvcache.core.store;

/// What a block must promise to be worth a write, so that only a share of what is put is written: that which
/// promises most. A promise of 1 is a use for certain of a block of mean cost, see [WriteAdmission].
///
/// After each window of puts the price moves by how far the share that was written is from the one that is
/// wanted. It is never below what a write costs by itself, so less is written than may be when there is not
/// enough that is worth it.
///
/// **Threads.** Owned by the store's lock.
final class AdmissionThreshold {

    /// Puts after which the price moves. In a model of both published traces a fourth and four times of it
    /// change what is written by up to five points and hits by less than one.
    private static final int WINDOW = 256;

    /// How far: a window in which everything is written makes a write dearer by a sixth. The same holds of
    /// a fourth and four times of this.
    private static final double STEP = 0.25;

    /// Above what blocks of usual prompts promise; a higher price would only take longer to fall
    /// again after a flush has written everything.
    private static final double MAX_THRESHOLD = 16;

    private final double share;
    private final double floor;
    private double threshold;
    private int puts;
    private long putBytes;
    private long writtenBytes;

    /// @param share of the bytes that are put that may be written, above 0
    /// @param gain what one use saves in units of what the write costs, above 0
    AdmissionThreshold(double share, double gain) {
        this.share = share;
        floor = Math.min(1, 1 / gain);
        threshold = floor;
    }

    void onPut(long bytes) {
        putBytes += bytes;
        if (++puts == WINDOW) {
            double wrote = Math.min(1, (double) writtenBytes / putBytes);
            threshold = Math.clamp(threshold * Math.exp(STEP * (wrote - share)), floor, MAX_THRESHOLD);
            puts = 0;
            putBytes = 0;
            writtenBytes = 0;
        }
    }

    void onWritten(long bytes) {
        writtenBytes += bytes;
    }

    /// Promise below which a block is not written, 0 to 16.
    double threshold() {
        return threshold;
    }
}
