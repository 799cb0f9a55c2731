package io.kvcache.core.policy;

import java.util.Arrays;

/// Which lists the leaves have of which callers said the same: a lane of lists for each thing said.
///
/// Lane 0 is for those of which nothing was said. A reuse class has a lane of its own and a label,
/// the number under which [ReuseModel] learns it, both from the first block on that is said to be
/// of it. A weight has one as long as there are any: what is weighed after that goes by its reuse
/// class alone.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Lanes {

    /// What is not said.
    static final int NONE = 0;

    /// One for each reuse class, and as many for weights.
    static final int MOST = 2 * Said.REUSE_CLASSES;

    private static final int MOST_FOR_WEIGHTS = MOST - Said.REUSE_CLASSES;

    private final byte[] laneOfSaid = new byte[Said.COUNT];
    private final byte[] saidOfLane = new byte[MOST];
    private final byte[] labelOfLane = new byte[MOST];
    private final byte[] laneOfLabel = new byte[Said.REUSE_CLASSES];
    private int count = 1;
    private int labels = 1;

    Lanes() {
        Arrays.fill(laneOfSaid, (byte) -1);
        laneOfSaid[Said.NOTHING] = NONE;
    }

    int count() {
        return count;
    }

    /// Reuse classes that were said of any block, and the one of which nothing was.
    int labels() {
        return labels;
    }

    /// The lane of what is said, after [#open].
    int of(int said) {
        return laneOfSaid[said];
    }

    int label(int lane) {
        return labelOfLane[lane];
    }

    /// What the weight leaves of what a block of the lane is worth.
    float weight(int lane) {
        return 1f / (1 << Said.halvings(saidOfLane[lane]));
    }

    /// The lane of a label without a weight.
    int laneOf(int label) {
        return laneOfLabel[label];
    }

    /// What was said of a block with this label and no weight.
    byte saidOf(int label) {
        return saidOfLane[laneOfLabel[label]];
    }

    /// Sees that what is said has a lane.
    void open(byte said) {
        byte plain = Said.of(Said.reuseClass(said), 0);
        if (laneOfSaid[plain] < 0) {
            laneOfLabel[labels] = (byte) count;
            add(plain, labels++);
        }
        int weighed = count - labels;
        if (laneOfSaid[said] < 0 && weighed < MOST_FOR_WEIGHTS) {
            add(said, labelOfLane[laneOfSaid[plain]]);
        } else if (laneOfSaid[said] < 0) {
            laneOfSaid[said] = laneOfSaid[plain];
        }
    }

    private void add(byte said, int label) {
        laneOfSaid[said] = (byte) count;
        saidOfLane[count] = said;
        labelOfLane[count] = (byte) label;
        count++;
    }
}
