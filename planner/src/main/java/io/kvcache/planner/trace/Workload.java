package io.kvcache.planner.trace;

/// The shape of generated traffic: the kinds of sessions, the gaps between their requests, and the lengths of
/// prompts and answers.
///
/// @param systemPrompts number of different system prompts
/// @param systemTokens their mean length in tokens
/// @param zipfExponent popularity of the system prompts: the k-th is requested in proportion to k to minus this
///     power
/// @param agentShare fraction of sessions that are agent loops, 0 to 1
/// @param chat what people's sessions look like
/// @param agent what agent loops look like
/// @param sessionGapMillis mean time between two session starts
/// @param maxInputTokens a session ends before its prompt grows beyond this
public record Workload(
        int systemPrompts,
        int systemTokens,
        double zipfExponent,
        double agentShare,
        Session chat,
        Session agent,
        double sessionGapMillis,
        int maxInputTokens) {

    /// One kind of session.
    ///
    /// @param meanTurns mean number of requests, at least 1
    /// @param gapMillis median time from an answer to the next request: human think time, or a tool's run time
    /// @param addedTokens median tokens that a request adds: a question, or a tool's output
    /// @param answerTokens median tokens of an answer
    public record Session(double meanTurns, double gapMillis, int addedTokens, int answerTokens) {

        /// Checks ranges.
        public Session {
            require(meanTurns >= 1, "meanTurns", meanTurns, "at least 1");
            require(gapMillis > 0, "gapMillis", gapMillis, "positive");
            require(addedTokens >= 1, "addedTokens", addedTokens, "at least 1");
            require(answerTokens >= 1, "answerTokens", answerTokens, "at least 1");
        }
    }

    /// Checks ranges.
    public Workload {
        require(systemPrompts >= 1, "systemPrompts", systemPrompts, "at least 1");
        require(systemTokens >= 1, "systemTokens", systemTokens, "at least 1");
        require(zipfExponent >= 0, "zipfExponent", zipfExponent, "at least 0");
        require(agentShare >= 0 && agentShare <= 1, "agentShare", agentShare, "from 0 to 1");
        require(sessionGapMillis > 0, "sessionGapMillis", sessionGapMillis, "positive");
        require(maxInputTokens >= 2 * systemTokens, "maxInputTokens", maxInputTokens, "twice systemTokens or more");
    }

    /// Returns a mix of chats, with two minutes between a user's turns, and agent loops, one session in five,
    /// whose tools take two seconds. Studies of production traces report these gaps.
    public static Workload mixed() {
        return new Workload(
                50, 2000, 1.0, 0.2, new Session(4, 115_000, 300, 350), new Session(15, 1500, 900, 150), 2000, 128_000);
    }

    /// Returns chats alone, with prompts as long as in published traces of chats.
    public static Workload chats() {
        Session chat = new Session(5, 115_000, 900, 350);
        return new Workload(50, 3000, 1.0, 0, chat, chat, 6000, 128_000);
    }

    private static void require(boolean holds, String name, double value, String allowed) {
        if (!holds) {
            throw new IllegalArgumentException(name + " is " + value + ", must be " + allowed);
        }
    }
}
