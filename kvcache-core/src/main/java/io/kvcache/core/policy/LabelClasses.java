package io.kvcache.core.policy;

import java.util.Arrays;

/// Lanes of lists for leaves, one lane for each distinct label that callers gave.
///
/// Lane 0 is for blocks without a label. A reuse class has a lane of its own and a label, the number under which
/// [ReuseModel] learns it. It gets both with its first block. A weight gets one while lanes are left; later
/// weights go by their reuse class alone.
///
/// **Threads.** One writer, the holder of the store's lock.
final class LabelClasses {

    /// Lane of blocks without a label.
    static final int NONE = 0;

    /// One for each label, and as many for weights as there are reuse classes.
    static final int MAX_CLASSES = BlockLabel.LABELS + BlockLabel.REUSE_CLASSES;

    private static final int MAX_WEIGHT_CLASSES = MAX_CLASSES - BlockLabel.LABELS;

    private final byte[] classByBlockLabel = new byte[BlockLabel.COUNT];
    private final byte[] blockLabelByClass = new byte[MAX_CLASSES];
    private final byte[] labelByClass = new byte[MAX_CLASSES];
    private final byte[] classByLabel = new byte[BlockLabel.LABELS];
    private int count = 1;
    private int labels = 1;

    LabelClasses() {
        Arrays.fill(classByBlockLabel, (byte) -1);
        classByBlockLabel[BlockLabel.NONE] = NONE;
    }

    int count() {
        return count;
    }

    /// Reuse classes that were said of any block, and the one of which nothing was.
    int labelCount() {
        return labels;
    }

    /// The lane of what is said, after [#ensureClass].
    int classOf(int blockLabel) {
        return classByBlockLabel[blockLabel];
    }

    int labelOf(int labelClass) {
        return labelByClass[labelClass];
    }

    /// Returns the factor that the lane's weight puts on the score of its blocks.
    float weightOf(int labelClass) {
        return 1f / (1 << BlockLabel.halvings(blockLabelByClass[labelClass]));
    }

    /// The lane of a label without a weight.
    int classOfLabel(int label) {
        return classByLabel[label];
    }

    /// Returns the block label with this label and without a weight.
    byte blockLabelOf(int label) {
        return blockLabelByClass[classByLabel[label]];
    }

    /// Sees that what is said has a lane.
    void ensureClass(byte blockLabel) {
        byte plain = BlockLabel.withoutWeight(blockLabel);
        if (classByBlockLabel[plain] < 0) {
            classByLabel[labels] = (byte) count;
            add(plain, labels++);
        }
        int weighed = count - labels;
        if (classByBlockLabel[blockLabel] < 0 && weighed < MAX_WEIGHT_CLASSES) {
            add(blockLabel, labelByClass[classByBlockLabel[plain]]);
        } else if (classByBlockLabel[blockLabel] < 0) {
            classByBlockLabel[blockLabel] = classByBlockLabel[plain];
        }
    }

    private void add(byte blockLabel, int label) {
        classByBlockLabel[blockLabel] = (byte) count;
        blockLabelByClass[count] = blockLabel;
        labelByClass[count] = (byte) label;
        count++;
    }

    /// A resident block's reuse class and weight, in a byte that each record has once a caller gave any.
    ///
    /// ```
    /// 0 (1 bit) | halvings of its weight (2) | reuse class, or turn gap (5)
    /// ```
    static final class BlockLabel {

        /// Nothing was said.
        static final byte NONE = 0;

        /// Different bytes there are.
        static final int COUNT = 1 << 7;

        /// Reuse classes that are distinguished, the one without a label included. With the
        /// model's own classes they fit the classes that [GhostCache] has.
        static final int REUSE_CLASSES = 12;

        /// Reuse classes, and the turn gaps of blocks of which no caller said anything.
        static final int LABELS = REUSE_CLASSES + TurnGap.STEPS;

        /// Halvings of a weight: an eighth is the least.
        static final int MAX_HALVINGS = 3;

        private static final int CLASS_MASK = 0x1F;
        private static final int HALVINGS_SHIFT = 5;

        private BlockLabel() {}

        /// Returns the reuse class that a caller said, or 0.
        static int reuseClass(int label) {
            int said = label & CLASS_MASK;
            return said < REUSE_CLASSES ? said : 0;
        }

        static byte withoutWeight(int label) {
            return (byte) (label & CLASS_MASK);
        }

        /// Returns the turn gap, or [TurnGap#NONE].
        static int turnGap(int label) {
            return Math.max(TurnGap.NONE, (label & CLASS_MASK) - REUSE_CLASSES + 1);
        }

        static byte ofTurnGap(int gap) {
            return gap == TurnGap.NONE ? NONE : (byte) (REUSE_CLASSES + gap - 1);
        }

        /// Returns whether a caller said something of the block.
        static boolean isGiven(int label) {
            return label != NONE && turnGap(label) == TurnGap.NONE;
        }

        static int halvings(int label) {
            return label >>> HALVINGS_SHIFT;
        }

        static byte of(int reuseClass, int halvings) {
            assert reuseClass >= 0 && reuseClass < REUSE_CLASSES : "reuse class " + reuseClass;
            assert halvings >= 0 && halvings <= MAX_HALVINGS : halvings + " halvings";
            return (byte) (halvings << HALVINGS_SHIFT | reuseClass);
        }
    }

    /// How much was used between a session's turns, in steps: a chat whose user reads for minutes returns with
    /// other odds than an agent that waits for a tool.
    ///
    /// Sessions are known by their growing path. A turn finds the blocks of the one before it, and the time
    /// since the deepest of them was used is the session's gap. What was evicted of them is known by its ghost,
    /// and blocks that are new have the gap of the block before them. A gap is the mean of a session's gaps so
    /// far, the last one counting a third. It is learned like a label of [ReuseModel], and is in the label's
    /// place where no caller gave one ([BlockLabel]).
    static final class TurnGap {

        /// Nothing is known of it: a first turn.
        static final int NONE = 0;

        /// Steps that are distinguished. Each is twice as long as the one before: the first ends at a quarter of a
        /// cache full, the last begins at two.
        static final int STEPS = 5;

        /// The step that begins at one cache full.
        private static final int STEP_OF_CACHE = 4;

        /// Weight of the mean so far, where the last gap has weight 1.
        private static final int WEIGHT_BEFORE = 2;

        private static final int MIN_BLOCKS = 64;

        private TurnGap() {}

        /// Returns the gap after one more turn.
        ///
        /// @param before the session's gap until now, or [#NONE]
        /// @param age uses since its previous turn
        /// @param blocks resident blocks
        /// @return 1 to [#STEPS]
        static int afterTurn(int before, long age, int blocks) {
            int octaves = Math.getExponent((double) Math.max(1, age) / Math.max(MIN_BLOCKS, blocks));
            int step = Math.clamp(STEP_OF_CACHE + octaves, 1, STEPS);
            return before == NONE ? step : (WEIGHT_BEFORE * before + step + 1) / (WEIGHT_BEFORE + 1);
        }
    }
}
