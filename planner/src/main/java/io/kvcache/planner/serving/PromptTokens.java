package io.kvcache.planner.serving;

import io.kvcache.planner.trace.TraceRequest;
import java.util.SplittableRandom;

/// Makes prompts of tokens that nearly every model has: those from 3 to 511, which are no special ones in most
/// vocabularies.
final class PromptTokens {

    private static final int FIRST = 3;
    private static final int END = 512;
    private static final long BLOCK_FACTOR = 0x9e37_79b9_7f4a_7c15L;

    private PromptTokens() {}

    static int[] random(SplittableRandom random, int count) {
        return random.ints(count, FIRST, END).toArray();
    }

    /// The prompt of a request: requests with an id in common have its tokens in common.
    ///
    /// @param salt another one gives other tokens
    static int[] of(TraceRequest request, int blockTokens, long salt) {
        int[] prompt = new int[request.inputTokens()];
        for (int at = 0; at < prompt.length; at += blockTokens) {
            int block = at / blockTokens;
            // A tail without an id is the request's own.
            long id =
                    block < request.hashIds().length ? 2 * request.hashIds()[block] : 2 * request.timestampMillis() + 1;
            int count = Math.min(blockTokens, prompt.length - at);
            System.arraycopy(random(new SplittableRandom(salt ^ id * BLOCK_FACTOR), count), 0, prompt, at, count);
        }
        return prompt;
    }
}
