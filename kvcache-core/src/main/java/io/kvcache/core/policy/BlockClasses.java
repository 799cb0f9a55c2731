package io.kvcache.core.policy;

/// The classes of blocks that [ReuseModel] tells apart.
///
/// Blocks of one step of use are a group. In the first four groups it also matters whether the
/// request that used a block last ended there, and with how many new ones it came ([Cohort]). What was used oftener is
/// what many requests begin with, and of that only how often it was used is told apart: there are few
/// such prompts, so to learn of each place in them apart would be to learn the prompts themselves.
final class BlockClasses {

    /// Groups, from 0: one less than the step of use.
    static final int GROUPS = BlockWord.MOST_USES;

    /// Groups in which places are told apart.
    private static final int PLACED_GROUPS = 4;

    /// Classes of a group in which places are told apart: where a request ended is one.
    static final int PLACES = Cohort.STEPS + 1;

    /// Where the groups of one class begin.
    private static final int FIRST_ALONE = PLACED_GROUPS * PLACES;

    static final int COUNT = FIRST_ALONE + GROUPS - PLACED_GROUPS;

    private BlockClasses() {}

    /// @param group 0 to [#GROUPS], exclusive
    /// @param last whether the request that used the block last ended there
    /// @param cohort as [Cohort] has it
    static int of(int group, boolean last, int cohort) {
        return first(group) + (group < PLACED_GROUPS ? (last ? Cohort.STEPS : cohort) : 0);
    }

    static int group(int classId) {
        return classId < FIRST_ALONE ? classId / PLACES : PLACED_GROUPS + classId - FIRST_ALONE;
    }

    /// The first class of a group, or of what comes behind the last one.
    static int first(int group) {
        return group <= PLACED_GROUPS ? group * PLACES : FIRST_ALONE + group - PLACED_GROUPS;
    }
}
