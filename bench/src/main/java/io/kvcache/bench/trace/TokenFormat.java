package io.kvcache.bench.trace;

import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// Our own simple format: `tokens`, the ids of the prompt's tokens, and, if they are known, `timestamp`
/// (milliseconds, 0 when absent) and `output_length` (0 when absent).
///
/// Blocks have 16 tokens. Each gets a number by its tokens and the number of the block before it,
/// compared exactly, in the order of appearance; the last may be partial.
final class TokenFormat implements TraceFormat {

    private static final int BLOCK_TOKENS = 16;
    private static final long NONE = -1;

    private final Map<TokenBlock, Long> numbers = new HashMap<>();

    /// A block: the one before it, and its tokens.
    private record TokenBlock(long before, IntBuffer tokens) {}

    @Override
    public int blockTokens() {
        return BLOCK_TOKENS;
    }

    @Override
    public TraceRequest parse(JsonLineFields line) {
        int[] tokens = tokens(line);
        long at = line.has("timestamp") ? line.wholeNumber("timestamp", Long.MAX_VALUE) : 0;
        int answer = line.has("output_length") ? line.countOf("output_length") : 0;
        return new TraceRequest(at, tokens.length, answer, blocks(tokens));
    }

    private long[] blocks(int[] tokens) {
        long[] ids = new long[Math.ceilDiv(tokens.length, BLOCK_TOKENS)];
        long before = NONE;
        for (int i = 0; i < ids.length; i++) {
            int start = i * BLOCK_TOKENS;
            int end = Math.min(tokens.length, start + BLOCK_TOKENS);
            TokenBlock tokenBlock = new TokenBlock(before, IntBuffer.wrap(Arrays.copyOfRange(tokens, start, end)));
            before = numbers.computeIfAbsent(tokenBlock, any -> (long) numbers.size());
            ids[i] = before;
        }
        return ids;
    }

    private static int[] tokens(JsonLineFields line) {
        long[] numbers = line.wholeNumbers("tokens", "token");
        if (numbers.length == 0) {
            throw new IllegalArgumentException("tokens is empty, must hold at least 1");
        }
        int[] tokens = new int[numbers.length];
        for (int i = 0; i < tokens.length; i++) {
            if (numbers[i] < 0 || numbers[i] > Integer.MAX_VALUE) {
                throw new IllegalArgumentException(
                        "token is " + numbers[i] + ", must be from 0 to " + Integer.MAX_VALUE);
            }
            tokens[i] = (int) numbers[i];
        }
        return tokens;
    }
}
