package io.kvcache.planner.trace;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/// The shape of the traffic of agents with tools, see [AgentTraceGenerator].
///
/// @param requests requests in the trace, 1 to 1,000,000
/// @param sessions sessions at work at once, 1 to 10,000
/// @param toolSeconds median time that a tool runs, 1 to 3,600
/// @param humanSeconds median time until a human answers, 1 to 86,400
/// @param contextTokens a session ends before its prompt grows beyond this, 20,000 to 2,000,000
/// @param definitionTokens median length of an application's system prompt and tool definitions, 1 to 10,000
public record AgentWorkload(
        int requests, int sessions, int toolSeconds, int humanSeconds, int contextTokens, int definitionTokens) {

    /// Sessions of coding agents as traces of them show: tools that run for 17 seconds, humans who answer after
    /// 145, contexts of up to 200,000 tokens.
    public static final AgentWorkload USUAL = new AgentWorkload(12_000, 44, 17, 145, 200_000, 8000);

    /// The settings' names, for messages.
    public static final String NAMES = "requests, sessions, tool, human, context, definitions";

    private static final String RANGES = "requests (1 to 1000000), sessions (1 to 10000), tool (1 to 3600 s),"
            + " human (1 to 86400 s), context (20000 to 2000000 tokens), definitions (1 to 10000 tokens)";

    private static final Set<String> KNOWN = Set.of(NAMES.split(", "));

    /// Checks ranges.
    public AgentWorkload {
        require("requests", requests, 1, 1_000_000);
        require("sessions", sessions, 1, 10_000);
        require("tool", toolSeconds, 1, 3600);
        require("human", humanSeconds, 1, 86_400);
        require("context", contextTokens, 20_000, 2_000_000);
        require("definitions", definitionTokens, 1, 10_000);
    }

    /// Reads settings such as `sessions=48` and `tool=30`; what is not named is as usual.
    ///
    /// @throws IllegalArgumentException that names the setting that is unknown, repeated or out of range, and what
    ///     settings there are
    static AgentWorkload parse(List<String> settings) {
        Map<String, Integer> values = new TreeMap<>();
        for (String setting : settings) {
            int equals = setting.indexOf('=');
            String name = equals < 0 ? setting : setting.substring(0, equals);
            if (equals < 0 || !KNOWN.contains(name)) {
                throw invalid("'" + setting + "' is not a setting (NAME=N) of a trace of agents");
            }
            Integer before;
            try {
                before = values.put(name, Integer.valueOf(setting.substring(equals + 1)));
            } catch (NumberFormatException _) {
                throw invalid("'" + setting + "' of a trace of agents needs a whole number");
            }
            if (before != null) {
                throw invalid(name + " of a trace of agents is given twice, as " + before + " and '" + setting + "'");
            }
        }
        return new AgentWorkload(
                values.getOrDefault("requests", USUAL.requests),
                values.getOrDefault("sessions", USUAL.sessions),
                values.getOrDefault("tool", USUAL.toolSeconds),
                values.getOrDefault("human", USUAL.humanSeconds),
                values.getOrDefault("context", USUAL.contextTokens),
                values.getOrDefault("definitions", USUAL.definitionTokens));
    }

    private static void require(String name, int value, int lowest, int highest) {
        if (value < lowest || value > highest) {
            throw invalid(name + " of a trace of agents is " + value + ", must be from " + lowest + " to " + highest);
        }
    }

    private static IllegalArgumentException invalid(String mistake) {
        return new IllegalArgumentException(mistake + "; settings: " + RANGES);
    }
}
