package io.kvcache.bench.trace;

/// One request of a trace.
///
/// @param timestampMillis when it arrived, from the start of the trace
/// @param inputTokens length of the prompt
/// @param outputTokens length of the answer
/// @param hashIds identities of the prompt's blocks of [Trace#BLOCK_TOKENS] tokens, prefix-chained: equal ids mean
///     equal tokens from the start of the prompt. The last block may be partial. Not to be changed
@SuppressWarnings("ArrayRecordComponent") // Hundreds of thousands of ids; nothing compares requests with equals.
public record TraceRequest(long timestampMillis, int inputTokens, int outputTokens, long[] hashIds) {

    /// Checks lengths, signs and the number of ids.
    public TraceRequest {
        require(timestampMillis >= 0, "timestamp", timestampMillis, "at least 0");
        require(inputTokens >= 1, "input_length", inputTokens, "at least 1");
        require(outputTokens >= 0, "output_length", outputTokens, "at least 0");
        int blocks = Math.ceilDiv(inputTokens, Trace.BLOCK_TOKENS);
        require(
                hashIds.length == blocks,
                "number of hash_ids",
                hashIds.length,
                blocks + " for an input_length of " + inputTokens);
        for (long id : hashIds) {
            require(id >= 0, "hash id", id, "at least 0");
        }
    }

    private static void require(boolean holds, String name, long value, String allowed) {
        if (!holds) {
            throw new IllegalArgumentException(name + " is " + value + ", must be " + allowed);
        }
    }
}
