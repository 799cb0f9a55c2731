package io.kvcache.planner.trace;

import java.util.HashMap;
import java.util.Map;

/// Numbers the blocks of generated prompts in the order of their appearance.
///
/// What a block holds is never generated. It is known from where it lies: inside a prefix that sessions share it
/// is the same for all of them, beyond it the session's own; a partial block differs from the full one that it
/// becomes.
final class BlockNumbering {

    private final Map<Block, Long> numbers = new HashMap<>();

    /// Identifies the content of a block: its owner, its index and the number of its tokens.
    private record Block(boolean shared, int owner, int index, int tokens) {}

    /// Returns the ids of a prompt's blocks.
    ///
    /// @param prefix number of the shared prefix that the prompt begins with
    /// @param prefixTokens its length
    /// @param session number of the session, whose own the rest of the prompt is
    /// @param inputTokens length of the prompt
    long[] ids(int prefix, int prefixTokens, int session, int inputTokens) {
        long[] ids = new long[Math.ceilDiv(inputTokens, Trace.BLOCK_TOKENS)];
        for (int i = 0; i < ids.length; i++) {
            int end = Math.min(inputTokens, (i + 1) * Trace.BLOCK_TOKENS);
            boolean shared = end <= prefixTokens;
            Block block = new Block(shared, shared ? prefix : session, i, end - i * Trace.BLOCK_TOKENS);
            ids[i] = numbers.computeIfAbsent(block, any -> (long) numbers.size());
        }
        return ids;
    }
}
