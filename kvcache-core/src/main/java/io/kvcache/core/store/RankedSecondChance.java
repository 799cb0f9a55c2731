package io.kvcache.core.store;

/// Which of the blocks that were used least recently are spared all the same, because the host
/// tier's policy wants them more than what goes otherwise: those whose rank is a quarter above the
/// mean of the candidates before, and so many in a row at most. What is spared counts as used now.
///
/// So order by last use has its way among blocks of about one rank, and where a policy ranks none.
///
/// **Threads.** Owned by the store's lock.
final class RankedSecondChance {

    private static final int MAX_IN_A_ROW = 16;

    /// Candidates that the mean is of, about.
    private static final int MEMORY = 64;

    private static final double MARGIN = 1.25;

    private double mean = Double.NaN;
    private int inARow;

    /// Whether the next candidate is spared.
    ///
    /// @param rank of it, 0 and up; without end for what is in use, which says nothing of others
    boolean isExempt(double rank) {
        double before = mean;
        if (rank < Double.POSITIVE_INFINITY) {
            mean = Double.isNaN(before) ? rank : before + (rank - before) / MEMORY;
        }
        inARow = rank > MARGIN * before && inARow < MAX_IN_A_ROW ? inARow + 1 : 0;
        return inARow > 0;
    }
}
