package io.kvcache.bench.trace;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

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

    private static final List<String> NAMES =
            List.of("requests", "sessions", "tool", "human", "context", "definitions");

    /// Checks ranges.
    public AgentWorkload {
        require("requests", requests, 1, 1_000_000);
        require("sessions", sessions, 1, 10_000);
        require("tool", toolSeconds, 1, 3600);
        require("human", humanSeconds, 1, 86_400);
        require("context", contextTokens, 20_000, 2_000_000);
        require("definitions", definitionTokens, 1, 10_000);
    }

    /// Reads settings such as `sessions=48:tool=30`; what is not named is as usual.
    ///
    /// @throws IllegalArgumentException that names the setting that is unknown or out of range
    static AgentWorkload parse(String settings) {
        Map<String, Integer> values = new TreeMap<>();
        for (String setting : settings.isEmpty() ? new String[0] : settings.split(":", -1)) {
            int equals = setting.indexOf('=');
            String name = equals < 0 ? setting : setting.substring(0, equals);
            if (equals < 0 || !NAMES.contains(name)) {
                throw new IllegalArgumentException("'" + setting + "' is no setting of a trace of agents; they are "
                        + NAMES.stream().map(any -> any + "=N").collect(Collectors.joining(":")));
            }
            try {
                values.put(name, Integer.valueOf(setting.substring(equals + 1)));
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException("'" + setting + "' of a trace of agents needs a whole number", e);
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
            throw new IllegalArgumentException(
                    name + " of a trace of agents is " + value + ", must be from " + lowest + " to " + highest);
        }
    }
}
