package io.kvcache.core.store;

/// Kinds of puts, which differ in how likely what is put is used again: by how many blocks of a
/// prompt were put at once and how many were here before them, each in powers of two. A long prompt
/// that nobody has begun before, a next turn and an answer's few blocks are of different kinds, and
/// a block is of the kind of what it was put with.
///
/// Of what is put alone nobody knows how much follows: its kind is its depth, in steps of about one
/// half.
final class PromptClass {

    /// Steps of a number of blocks; more than 65,535 count as those.
    private static final int STEPS = 17;

    private static final int MAX_BLOCKS = (1 << (STEPS - 1)) - 1;

    /// The first of the kinds by depth, of which there are two for each power of two.
    private static final int FIRST_SINGLE_BLOCK = (STEPS - 1) * STEPS;

    /// How many kinds there are.
    static final int COUNT = FIRST_SINGLE_BLOCK + 2 * STEPS - 1;

    /// How many groups of kinds there are: those of as many blocks, and those by depth.
    static final int GROUPS = STEPS;

    private PromptClass() {}

    /// Of the last blocks of a prompt.
    ///
    /// @param blocks that are put, at least 1
    /// @param before blocks that were here
    static int of(int blocks, int before) {
        return (step(blocks) - 1) * STEPS + step(before);
    }

    /// Of what is put alone.
    ///
    /// @param depth blocks before it
    static int ofSingleBlock(int depth) {
        int place = Math.min(depth, MAX_BLOCKS) + 1;
        int power = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(place);
        return FIRST_SINGLE_BLOCK + 2 * power + (power == 0 ? 0 : (place >>> (power - 1)) & 1);
    }

    static boolean isSingleBlock(int kind) {
        return kind >= FIRST_SINGLE_BLOCK;
    }

    /// 0 to [#GROUPS], exclusive.
    static int group(int kind) {
        return Math.min(kind / STEPS, GROUPS - 1);
    }

    /// 0 for none, 1 for one, 2 up to three and so on.
    private static int step(int blocks) {
        return Integer.SIZE - Integer.numberOfLeadingZeros(Math.min(blocks, MAX_BLOCKS));
    }
}
