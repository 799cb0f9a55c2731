package io.kvcache.core.store;

/// How likely a block is ever used again, by how deep in its chain it lies, learned from those that were.
///
/// Counted by depth in steps of about one half. Few blocks of a depth have the odds of all depths, and a few
/// imagined blocks keep the first answers sober. What was counted halves now and then, so that the odds follow
/// the load.
///
/// **Threads.** Owned by the store's lock.
final class ReuseOdds {

    /// Two steps for each power of two; blocks deeper than 65,535 count with those.
    private static final int STEPS = 33;

    private static final int DEEPEST = 1 << 16;

    /// Blocks after which all counts are halved.
    private static final long WINDOW = 1 << 20;

    /// Imagined blocks, and those of them that were used again: two in five, as in the conversation trace.
    private static final double PRIOR_BLOCKS = 20;

    private static final double PRIOR_AGAIN = 8;

    private final long[] put = new long[STEPS];
    private final long[] again = new long[STEPS];
    private long allPut;
    private long allAgain;
    private long counted;

    /// A block was put.
    ///
    /// @param depth blocks before it in its chain
    void put(int depth) {
        put[step(depth)]++;
        allPut++;
        age();
    }

    /// A block that was put was used for the first time.
    void used(int depth) {
        again[step(depth)]++;
        allAgain++;
        age();
    }

    /// The odds that a block that is put at such a depth is used again, 0 to 1.
    double of(int depth) {
        int step = step(depth);
        double ofAll = (allAgain + PRIOR_AGAIN) / (allPut + PRIOR_BLOCKS);
        return Math.min(1, (again[step] + PRIOR_BLOCKS * ofAll) / (put[step] + PRIOR_BLOCKS));
    }

    private static int step(int depth) {
        int place = Math.min(depth, DEEPEST - 1) + 1;
        int power = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(place);
        return 2 * power + (power == 0 ? 0 : place >>> (power - 1) & 1);
    }

    private void age() {
        if (++counted == WINDOW) {
            counted = 0;
            allPut /= 2;
            allAgain /= 2;
            for (int step = 0; step < STEPS; step++) {
                put[step] /= 2;
                again[step] /= 2;
            }
        }
    }
}
