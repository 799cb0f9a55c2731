package io.kvcache.core.store;

/// How likely a block is used again soon, by the kind of its put, learned from those that were.
///
/// Few blocks of a [PutKind] have the odds of the others of its group, few of a group those of all
/// others, and a few imagined blocks keep the first answers sober. What was counted halves now and
/// then, so that the odds follow the load.
///
/// **Threads.** Owned by the store's lock.
final class ReuseOdds {

    /// Blocks after which all counts are halved.
    private static final long WINDOW = 1 << 20;

    /// Imagined blocks, and those of them that were used again: two in five, as in the conversation
    /// trace.
    private static final double PRIOR_BLOCKS = 20;

    private static final double PRIOR_AGAIN = 8;

    private final Counts all = new Counts(1);
    private final Counts groups = new Counts(PutKind.GROUPS);
    private final Counts kinds = new Counts(PutKind.COUNT);
    private long counted;

    /// Blocks that were put, and those of them that were used again.
    @SuppressWarnings("ArrayRecordComponent") // counted up in place; nothing compares them with equals
    private record Counts(long[] put, long[] again) {

        Counts(int size) {
            this(new long[size], new long[size]);
        }

        void halve() {
            for (int at = 0; at < put.length; at++) {
                put[at] /= 2;
                again[at] /= 2;
            }
        }
    }

    /// A block was put.
    void put(int kind) {
        all.put[0]++;
        groups.put[PutKind.group(kind)]++;
        kinds.put[kind]++;
        age();
    }

    /// A block that was put was used for the first time, and soon enough.
    void used(int kind) {
        all.again[0]++;
        groups.again[PutKind.group(kind)]++;
        kinds.again[kind]++;
        age();
    }

    /// The odds that a block whose put is of such a kind is used again, 0 to 1.
    double of(int kind) {
        int group = PutKind.group(kind);
        double ofOthers =
                odds(all.again[0] - groups.again[group], all.put[0] - groups.put[group], PRIOR_AGAIN / PRIOR_BLOCKS);
        double ofGroup = odds(groups.again[group] - kinds.again[kind], groups.put[group] - kinds.put[kind], ofOthers);
        return Math.min(1, odds(kinds.again[kind], kinds.put[kind], ofGroup));
    }

    private static double odds(long again, long put, double without) {
        return (again + PRIOR_BLOCKS * without) / (put + PRIOR_BLOCKS);
    }

    private void age() {
        if (++counted == WINDOW) {
            counted = 0;
            all.halve();
            groups.halve();
            kinds.halve();
        }
    }
}
