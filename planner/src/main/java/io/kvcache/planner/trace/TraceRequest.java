package io.kvcache.planner.trace;

import java.util.Arrays;

/// One request of a trace.
///
/// @param timestampMillis when it arrived, from the start of the trace
/// @param inputTokens length of the prompt
/// @param outputTokens length of the answer
/// @param hashIds identities of the prompt's blocks, of as many tokens as the [Trace] says: two requests
///     have a block in common when its id and all those before it are equal. The last block may be
///     partial. Not to be changed
/// @param session which it is part of, or [#NO_SESSION] when the trace does not say
@SuppressWarnings("ArrayRecordComponent") // Hundreds of thousands of ids; nothing compares requests with equals.
public record TraceRequest(long timestampMillis, int inputTokens, int outputTokens, long[] hashIds, long session) {

    /// The trace does not say which session the request is part of.
    public static final long NO_SESSION = -1;

    /// Checks lengths and signs.
    public TraceRequest {
        require(timestampMillis >= 0, "timestamp", timestampMillis, "at least 0");
        require(inputTokens >= 1, "input_length", inputTokens, "at least 1");
        require(outputTokens >= 0, "output_length", outputTokens, "at least 0");
        require(session >= NO_SESSION, "session", session, "at least " + NO_SESSION);
        for (long id : hashIds) {
            require(id >= 0, "hash id", id, "at least 0");
        }
    }

    /// A request of no known session.
    public TraceRequest(long timestampMillis, int inputTokens, int outputTokens, long[] hashIds) {
        this(timestampMillis, inputTokens, outputTokens, hashIds, NO_SESSION);
    }

    /// Checks the number of ids: one for each full block, and at most one more, for what is left.
    ///
    /// @throws IllegalArgumentException when there are fewer or more
    void requireBlocks(int blockTokens) {
        int full = inputTokens / blockTokens;
        int all = Math.ceilDiv(inputTokens, blockTokens);
        require(
                hashIds.length >= full && hashIds.length <= all,
                "number of hash_ids",
                hashIds.length,
                (full == all ? "" : full + " or ") + all + " for an input_length of " + inputTokens);
    }

    /// The same request at another time.
    TraceRequest at(long millis) {
        return new TraceRequest(millis, inputTokens, outputTokens, hashIds, session);
    }

    /// The same request with blocks of another size.
    ///
    /// @param from tokens of a block
    /// @param to tokens of one afterwards
    /// @param maxInputTokens that are kept
    TraceRequest scaled(int from, int to, int maxInputTokens) {
        int input = Math.clamp((long) inputTokens * to / from, 1, maxInputTokens);
        long output = outputTokens == 0 ? 0 : Math.max(1, (long) outputTokens * to / from);
        int ids = Math.min(hashIds.length, Math.ceilDiv(input, to));
        return new TraceRequest(
                timestampMillis,
                input,
                Math.toIntExact(Math.min(output, Integer.MAX_VALUE)),
                Arrays.copyOf(hashIds, ids),
                session);
    }

    private static void require(boolean holds, String name, long value, String allowed) {
        if (!holds) {
            throw new IllegalArgumentException(name + " is " + value + ", must be " + allowed);
        }
    }
}
