package io.kvcache.core.policy;

/// The classes of blocks that [ReuseModel] tells apart.
///
/// Blocks of one step of use are a group. In the first three groups it also matters how much was new
/// when a block came ([NoveltyClass]), and whether the request that used it last ended there; of where
/// requests ended, only whether very much was new: the end of a prompt that comes once keeps all
/// blocks before it, so it is not to pass for the end of a chat's next turn. What was used oftener is
/// what many requests begin with, and of that only how often it was used is told apart: there are few
/// such prompts, so to learn of each place in them apart would be to learn the prompts themselves.
final class BlockClasses {

    /// Groups, from 0: one less than the step of use.
    static final int GROUPS = ImportanceWord.MAX_USES;

    /// Groups in which places are told apart.
    private static final int POSITIONED_GROUPS = 3;

    /// Where requests ended: what came with cohorts from this one on is told from the rest.
    private static final int HIGH_NOVELTY = 3;

    /// Classes of a group in which places are told apart: where requests ended are two.
    static final int POSITIONS = NoveltyClass.COUNT + 2;

    /// Where the groups of one class begin.
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
        return classId < FIRST_SINGLE_CLASS ? classId / POSITIONS : POSITIONED_GROUPS + classId - FIRST_SINGLE_CLASS;
    }

    /// The first class of a group, or of what comes behind the last one.
    static int firstClass(int group) {
        return group <= POSITIONED_GROUPS ? group * POSITIONS : FIRST_SINGLE_CLASS + group - POSITIONED_GROUPS;
    }
}
