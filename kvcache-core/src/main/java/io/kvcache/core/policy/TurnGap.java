package io.kvcache.core.policy;

/// How much was used between a session's turns, in steps: a chat whose user reads for minutes returns with other
/// odds than an agent that waits for a tool.
///
/// Sessions are known by their growing path. A turn finds the blocks of the one before it, and the time since the
/// deepest of them was used is the session's gap. What was evicted of them is known by its ghost, and blocks that
/// are new have the gap of the block before them. A gap is the mean of a session's gaps so far, the last one
/// counting a third. It is learned like a label of [ReuseModel], and is in the label's place where no caller gave
/// one ([BlockLabel]).
final class TurnGap {

    /// Nothing is known of it: a first turn.
    static final int NONE = 0;

    /// Steps that are told apart. Each is twice as long as the one before: the first ends at a quarter of a cache
    /// full, the last begins at two.
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
