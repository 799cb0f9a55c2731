package io.kvcache.core.store;

/// How likely a block that was used so often is used again, learned from those that were.
///
/// Counted by uses since the block was put, up to seven; what was counted halves now and then, so that the odds
/// follow the load. A few imagined blocks keep the first answers sober.
///
/// **Threads.** Owned by the store's lock.
final class ReuseOdds {

    /// Uses that are told apart; three bits in a record's identity.
    static final int MOST_USES = 7;

    /// Blocks after which all counts are halved.
    private static final long WINDOW = 1 << 20;

    /// Imagined blocks, and those of them that were used again: two in five, as in the conversation trace.
    private static final double PRIOR_BLOCKS = 20;

    private static final double PRIOR_AGAIN = 8;

    private final long[] reached = new long[MOST_USES + 1];
    private final long[] again = new long[MOST_USES + 1];
    private long counted;

    /// A block was put.
    void put() {
        reached[0]++;
        age();
    }

    /// A block that had been used so often was used again.
    void used(int uses) {
        again[uses]++;
        if (uses < MOST_USES) {
            reached[uses + 1]++;
        } else {
            reached[uses]++;
        }
        age();
    }

    /// The odds that a block used so often is used again, 0 to 1.
    double of(int uses) {
        return Math.min(1, (again[uses] + PRIOR_AGAIN) / (reached[uses] + PRIOR_BLOCKS));
    }

    private void age() {
        if (++counted == WINDOW) {
            counted = 0;
            for (int uses = 0; uses <= MOST_USES; uses++) {
                reached[uses] /= 2;
                again[uses] /= 2;
            }
        }
    }
}
