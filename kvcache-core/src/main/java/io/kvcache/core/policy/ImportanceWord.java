package io.kvcache.core.policy;

/// State that [ImportancePolicy] keeps of a resident block, in the word that each record has in
/// [PolicyState#words].
///
/// ```
/// last use (44 bits) | copied (1) | cohort (3) | last of its request (1) | uses (4) | standing (2) |
/// owner (8) | listed (1)
/// ```
///
/// Owner and the lowest bit lie where [LeafHeap] has them, as the same words serve [DiskLru] when a
/// record has left the host tier. 2^44 uses last for five weeks at five million a second.
final class ImportanceWord {

    static final long LISTED = 1;

    /// Standing: nothing special.
    static final int NORMAL = 0;
    /// Standing: worth nothing any more.
    static final int DEMOTED = 1;
    /// Standing: a request that will use it is known to come; its last use counts as at the
    /// announcement.
    static final int EXPECTED = 2;
    /// Standing: the store has guessed that it will be used, and it was not used since it came. What
    /// is remembered of it from before counts until it is.
    static final int PREFETCHED = 3;

    private static final int OWNER_SHIFT = 1;
    private static final long OWNER_MASK = 0xFFL << OWNER_SHIFT;
    private static final int STATUS_SHIFT = 9;
    private static final long STATUS_MASK = 3L << STATUS_SHIFT;
    private static final int USES_SHIFT = 11;
    private static final long USES_MASK = 15L << USES_SHIFT;
    private static final long LAST_OF_REQUEST = 1L << 15;
    private static final int NOVELTY_SHIFT = 16;
    private static final int NOVELTY_MASK = 7;
    private static final long COPIED = 1L << 19;
    private static final int STAMP_SHIFT = 20;
    private static final long STAMP_MASK = -1L << STAMP_SHIFT;

    private ImportanceWord() {}

    /// Steps of use that the policy tells apart: once, twice, some times, about five times, nine times and so on,
    /// up to about five hundred times and more.
    static final int MAX_USES = 11;

    /// The last step that is counted, for display alone: about 1.2 million times and more.
    static final int LAST_STEP = 15;

    /// Uses that are counted one by one. After that a step is twice as far as the one before, and eight times
    /// beyond [#MAX_USES].
    private static final int EXACT_USES = 3;

    private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

    /// @param uses 1 to [#LAST_STEP]
    /// @param novelty as [NoveltyClass] has it
    static long of(int owner, int uses, int novelty, long stamp) {
        return ((long) owner << OWNER_SHIFT)
                | ((long) uses << USES_SHIFT)
                | LAST_OF_REQUEST
                | ((long) novelty << NOVELTY_SHIFT)
                | (stamp << STAMP_SHIFT);
    }

    static int owner(long word) {
        return (int) ((word & OWNER_MASK) >>> OWNER_SHIFT);
    }

    static int uses(long word) {
        return (int) ((word & USES_MASK) >>> USES_SHIFT);
    }

    static long stamp(long word) {
        return word >>> STAMP_SHIFT;
    }

    static long withStamp(long word, long stamp) {
        return (word & ~STAMP_MASK) | (stamp << STAMP_SHIFT);
    }

    static int status(long word) {
        return (int) ((word & STATUS_MASK) >>> STATUS_SHIFT);
    }

    /// Returns whether a resident block is among those that count in [ReuseTracker.AgeHistogram].
    static boolean isCounted(long word) {
        return status(word) == NORMAL || status(word) == DEMOTED;
    }

    static long withStatus(long word, int status) {
        return (word & ~STATUS_MASK) | ((long) status << STATUS_SHIFT);
    }

    /// The step of use after one more use. Beyond those that are counted it goes up for one use in two,
    /// then for one in four, in eight and so on, to one in 256, and beyond [#MAX_USES] for one in 2^11, 2^14, 2^17
    /// and 2^20. The time of the use decides: it does so evenly, so that of blocks used together every second goes
    /// up.
    ///
    /// Source: Morris, "Counting large numbers of events in small registers", CACM 1978.
    static int nextUseStep(int uses, long stamp) {
        if (uses < EXACT_USES) {
            return uses + 1;
        }
        boolean up = uses < LAST_STEP && (stamp * HASH_MULTIPLIER) >>> (Long.SIZE - stepBits(uses)) == 0;
        return up ? uses + 1 : uses;
    }

    /// Returns the logarithm of the uses from a step to the next one.
    private static int stepBits(int step) {
        return step + 1 - EXACT_USES + 2 * Math.max(0, step + 1 - MAX_USES);
    }

    /// Uses after which a record is at a step, on average.
    static int expectedUses(int step) {
        int uses = Math.min(step, EXACT_USES);
        for (int below = EXACT_USES; below < step; below++) {
            uses += 1 << stepBits(below);
        }
        return uses;
    }

    /// One more use, after which the standing is ordinary.
    ///
    /// @param last whether the request ends at this block, as far as is known
    static long withUse(long word, boolean last, long stamp) {
        long uses = nextUseStep(uses(word), stamp);
        long kept = word & ~(STAMP_MASK | USES_MASK | LAST_OF_REQUEST | STATUS_MASK);
        return kept | (uses << USES_SHIFT) | (last ? LAST_OF_REQUEST : 0) | (stamp << STAMP_SHIFT);
    }

    static boolean isLast(long word) {
        return (word & LAST_OF_REQUEST) != 0;
    }

    /// The request goes on behind this block.
    static long withContinuation(long word) {
        return word & ~LAST_OF_REQUEST;
    }

    /// The class of what is expected, behind those that the model knows.
    static final int EXPECTED_CLASS = BlockClasses.COUNT;

    /// The lists' classes in a lane of [LabelClasses]: those above, then those of the model once more, for
    /// blocks that a slower tier has too.
    static final int LISTS = EXPECTED_CLASS + 1 + BlockClasses.COUNT;

    static boolean isCopied(long word) {
        return (word & COPIED) != 0;
    }

    static long withCopied(long word, boolean copied) {
        return copied ? word | COPIED : word & ~COPIED;
    }

    /// The list's class of those blocks of a class that a slower tier has too.
    static int copiedClass(int classId) {
        return EXPECTED_CLASS + 1 + classId;
    }

    /// The class of the list that the block belongs to: 0 to [#LISTS], exclusive, in the lane. What
    /// is expected is in lane 0, whatever was said of it.
    static int listOf(int labelClass, long word) {
        int classId = classOf(word);
        if (classId == EXPECTED_CLASS) {
            return EXPECTED_CLASS;
        }
        return labelClass * LISTS + (isCopied(word) ? copiedClass(classId) : classId);
    }

    /// The block's class, 0 to [#EXPECTED_CLASS].
    static int classOf(long word) {
        return status(word) == EXPECTED ? EXPECTED_CLASS : baseClass(word);
    }

    /// The block's class whatever is expected of it.
    static int baseClass(long word) {
        int group = Math.min(uses(word), MAX_USES) - 1;
        return BlockClasses.classOf(group, isLast(word), (int) (word >>> NOVELTY_SHIFT) & NOVELTY_MASK);
    }

    /// The step of use that a class stands for.
    static int usesOf(int classId) {
        return BlockClasses.group(classId) + 1;
    }

    /// The classes of blocks that [ReuseModel] distinguishes.
    ///
    /// Blocks of one step of use are a group. In the first three groups it also matters how much was new
    /// when a block came ([NoveltyClass]), and whether the request that used it last ended there; of where
    /// requests ended, only whether very much was new: the end of a prompt that comes once keeps all
    /// blocks before it, so it is not to pass for the end of a chat's next turn. What was used oftener is
    /// what many requests begin with, and of that only how often it was used is told apart: there are few
    /// such prompts, so to learn of each place in them apart would be to learn the prompts themselves.
    static final class BlockClasses {

        /// Groups, from 0: one less than the step of use.
        static final int GROUPS = ImportanceWord.MAX_USES;

        /// Groups in which places are distinguished.
        private static final int POSITIONED_GROUPS = 3;

        /// First novelty cohort whose request ends are a class of their own.
        private static final int HIGH_NOVELTY = 3;

        /// Classes of a group in which places are told apart: where requests ended are two.
        static final int POSITIONS = NoveltyClass.COUNT + 2;

        /// First group of the single classes.
        private static final int FIRST_SINGLE_CLASS = POSITIONED_GROUPS * POSITIONS;

        static final int COUNT = FIRST_SINGLE_CLASS + GROUPS - POSITIONED_GROUPS;

        private BlockClasses() {}

        /// @param group 0 to [#GROUPS], exclusive
        /// @param last whether the request that used the block last ended there
        /// @param cohort as [NoveltyClass] has it
        static int classOf(int group, boolean last, int cohort) {
            return firstClass(group) + (group < POSITIONED_GROUPS ? position(last, cohort) : 0);
        }

        private static int position(boolean last, int cohort) {
            if (!last) {
                return cohort;
            }
            return cohort < HIGH_NOVELTY ? NoveltyClass.COUNT : NoveltyClass.COUNT + 1;
        }

        static int group(int classId) {
            return classId < FIRST_SINGLE_CLASS
                    ? classId / POSITIONS
                    : POSITIONED_GROUPS + classId - FIRST_SINGLE_CLASS;
        }

        /// The first class of a group, or of what comes behind the last one.
        static int firstClass(int group) {
            return group <= POSITIONED_GROUPS ? group * POSITIONS : FIRST_SINGLE_CLASS + group - POSITIONED_GROUPS;
        }
    }
}
