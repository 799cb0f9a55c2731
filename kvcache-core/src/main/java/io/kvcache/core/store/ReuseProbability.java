package io.kvcache.core.store;

import io.kvcache.core.store.WriteAdmission.PromptClass;

/// How likely a block is used again soon, by the kind of its put, learned from those that were.
///
/// Few blocks of a [PromptClass] have the odds of the others of its group, few of a group those of all
/// others, and a few imagined blocks keep the first answers sober. What was counted halves now and
/// then, so that the odds follow the load.
///
/// **Threads.** Owned by the store's lock.
final class ReuseProbability {

    /// Blocks after which all counts are halved.
    private static final long WINDOW = 1 << 20;

    /// Imagined blocks, and those of them that were used again: two in five, as in the conversation
    /// trace.
    private static final double PRIOR_BLOCKS = 20;

    private static final double PRIOR_AGAIN = 8;

    private final Counts all = new Counts(1);
    private final Counts groups = new Counts(PromptClass.GROUPS);
    private final Counts kinds = new Counts(PromptClass.COUNT);
    private long counted;

    /// Blocks that were put, and those of them that were used again.
    @SuppressWarnings("ArrayRecordComponent") // counted up in place; nothing compares them with equals
    private record Counts(long[] put, long[] reused) {

        Counts(int size) {
            this(new long[size], new long[size]);
        }

        void halve() {
            for (int at = 0; at < put.length; at++) {
                put[at] /= 2;
                reused[at] /= 2;
            }
        }
    }

    /// A block was put.
    void onPut(int kind) {
        all.put[0]++;
        groups.put[PromptClass.group(kind)]++;
        kinds.put[kind]++;
        decay();
    }

    /// A block that was put was used for the first time, and soon enough.
    void onFirstUse(int kind) {
        all.reused[0]++;
        groups.reused[PromptClass.group(kind)]++;
        kinds.reused[kind]++;
        decay();
    }

    /// The odds that a block whose put is of such a kind is used again, 0 to 1.
    double probability(int kind) {
        int group = PromptClass.group(kind);
        double ofOthers = estimate(
                all.reused[0] - groups.reused[group], all.put[0] - groups.put[group], PRIOR_AGAIN / PRIOR_BLOCKS);
        double ofGroup =
                estimate(groups.reused[group] - kinds.reused[kind], groups.put[group] - kinds.put[kind], ofOthers);
        return Math.min(1, estimate(kinds.reused[kind], kinds.put[kind], ofGroup));
    }

    private static double estimate(long again, long put, double without) {
        return (again + PRIOR_BLOCKS * without) / (put + PRIOR_BLOCKS);
    }

    private void decay() {
        if (++counted == WINDOW) {
            counted = 0;
            all.halve();
            groups.halve();
            kinds.halve();
        }
    }
}
