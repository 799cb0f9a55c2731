package io.kvcache.core.policy;

/// How much of a prompt was new to the cache when a block of it came: the tokens of the blocks that
/// came with it and of which nothing was remembered, in steps.
///
/// It separates a question about a known document from the document, and a chat's next turn from its
/// first: each is asked again with other odds, and these are learned.
public final class NoveltyClass {

    /// How many steps there are.
    public static final int COUNT = 5;

    /// Tokens of which the second step begins; each one after it begins four times as far.
    private static final int FIRST_TOKENS = 512;

    private static final int STEP_BITS = 2;

    /// Tokens of what is put alone, whose number is unknown.
    private static final int DEFAULT_TOKENS = 256;

    private NoveltyClass() {}

    /// Returns the class for a number of new tokens, 0 to [#COUNT], exclusive.
    public static int of(long tokens) {
        int step = 0;
        for (long left = tokens / FIRST_TOKENS; left > 0 && step < COUNT - 1; left >>>= STEP_BITS) {
            step++;
        }
        return step;
    }

    /// The step of a block that came alone: what came with it is unknown, so those before it count.
    ///
    /// @param depth blocks before it
    public static int ofSingleBlock(int depth) {
        return of((depth + 1L) * DEFAULT_TOKENS);
    }
}
