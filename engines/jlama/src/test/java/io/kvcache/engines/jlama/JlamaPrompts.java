package io.kvcache.engines.jlama;

import java.util.Arrays;
import java.util.SplittableRandom;

/// Prompts of random tokens.
final class JlamaPrompts {

    private static final int FIRST = 3;

    private JlamaPrompts() {}

    static int[] random(long seed, int length) {
        SplittableRandom random = new SplittableRandom(seed);
        int[] tokens = new int[length];
        tokens[0] = 1;
        for (int i = 1; i < length; i++) {
            tokens[i] = random.nextInt(FIRST, RandomLlama.VOCABULARY - 1);
        }
        return tokens;
    }

    /// The first tokens of a prompt, and then others.
    static int[] diverging(int[] from, int shared, long seed, int length) {
        int[] tokens = random(seed, length);
        System.arraycopy(from, 0, tokens, 0, shared);
        if (shared < length && shared < from.length && tokens[shared] == from[shared]) {
            tokens[shared] = from[shared] == FIRST ? FIRST + 1 : FIRST;
        }
        return tokens;
    }

    static int[] concatenate(int[] first, int[] second) {
        int[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }
}
