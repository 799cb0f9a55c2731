package io.kvcache.engines.chat;

import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import tools.jackson.databind.JsonNode;

/// Which parameters of a request this server answers by, which change nothing in an answer, and which it
/// refuses because ignoring them would give another answer than the one that was asked for.
///
/// A refused parameter may be sent with the value that asks for nothing, as clients do that fill in
/// every default.
final class RequestParameters {

    private static final int MAX_SHOWN_CHARACTERS = 80;

    private static final Set<String> SUPPORTED = Set.of(
            "model", "max_tokens", "max_completion_tokens", "temperature", "seed", "stop", "stream", "stream_options");

    /// They say something about the request, and nothing about its answer.
    private static final Set<String> IGNORED = Set.of(
            "metadata",
            "parallel_tool_calls",
            "prediction",
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "store",
            "user");

    /// What it does not do, and the values that ask for nothing.
    private static final Map<String, Predicate<JsonNode>> UNSUPPORTED = Map.ofEntries(
            Map.entry("audio", _ -> false),
            Map.entry("best_of", RequestParameters::isOne),
            Map.entry("echo", RequestParameters::isFalse),
            Map.entry("frequency_penalty", RequestParameters::isZero),
            Map.entry("function_call", RequestParameters::isNoTool),
            Map.entry("functions", RequestParameters::isEmpty),
            Map.entry("logit_bias", RequestParameters::isEmpty),
            Map.entry("logprobs", RequestParameters::isFalse),
            Map.entry("min_p", RequestParameters::isZero),
            Map.entry(
                    "modalities",
                    value -> value.size() == 1 && value.path(0).asString("").equals("text")),
            Map.entry("n", RequestParameters::isOne),
            Map.entry("presence_penalty", RequestParameters::isZero),
            Map.entry("reasoning_effort", value -> value.asString("").equals("none")),
            Map.entry("repetition_penalty", RequestParameters::isOne),
            Map.entry(
                    "response_format", value -> value.path("type").asString("").equals("text")),
            Map.entry("suffix", value -> value.asString("-").isEmpty()),
            Map.entry("tool_choice", RequestParameters::isNoTool),
            Map.entry("tools", RequestParameters::isEmpty),
            Map.entry("top_k", value -> value.isNumber() && value.doubleValue() <= 0),
            Map.entry("top_logprobs", RequestParameters::isZero),
            Map.entry("top_p", RequestParameters::isOne),
            Map.entry("verbosity", value -> value.asString("").equals("medium")),
            Map.entry("web_search_options", _ -> false));

    /// They choose among the likelier tokens, so they change nothing where the likeliest one is taken.
    private static final Set<String> SAMPLING_ONLY = Set.of("min_p", "top_k", "top_p");

    private static final Set<String> UNSUPPORTED_IN_MESSAGES =
            Set.of("audio", "function_call", "tool_call_id", "tool_calls");

    private RequestParameters() {}

    /// Checks all names, and the values of what is refused.
    ///
    /// @param input the parameter with the prompt, `messages` or `prompt`
    /// @param greedy whether the request takes the likeliest token
    static void check(JsonNode root, String input, boolean greedy) throws BadRequestException {
        for (Map.Entry<String, JsonNode> each : root.properties()) {
            String name = each.getKey();
            JsonNode value = each.getValue();
            Predicate<JsonNode> neutral = UNSUPPORTED.get(name);
            if (neutral != null) {
                boolean noEffect = greedy && SAMPLING_ONLY.contains(name) && value.isNumber();
                if (!value.isNull() && !noEffect && !neutral.test(value)) {
                    throw unsupported(name, value);
                }
            } else if (!SUPPORTED.contains(name) && !IGNORED.contains(name) && !name.equals(input)) {
                throw unknown(name, input);
            }
        }
    }

    /// Checks what one message has beside its role and content.
    static void checkMessage(JsonNode message) throws BadRequestException {
        for (String name : UNSUPPORTED_IN_MESSAGES) {
            JsonNode value = message.path(name);
            if (!value.isMissingNode() && !value.isNull() && !isEmpty(value)) {
                throw unsupported("messages." + name, value);
            }
        }
    }

    private static boolean isEmpty(JsonNode value) {
        return value.isContainer() && value.isEmpty();
    }

    private static boolean isZero(JsonNode value) {
        return value.isNumber() && value.doubleValue() == 0;
    }

    private static boolean isOne(JsonNode value) {
        return value.isNumber() && value.doubleValue() == 1;
    }

    private static boolean isFalse(JsonNode value) {
        return value.isBoolean() && !value.booleanValue();
    }

    private static boolean isNoTool(JsonNode value) {
        return Set.of("none", "auto").contains(value.asString(""));
    }

    private static BadRequestException unsupported(String name, JsonNode value) {
        return new BadRequestException(
                400,
                "unsupported_parameter",
                name,
                "%s is %s; this server does not support it and would give another answer than asked for: leave it out"
                        .formatted(name, describe(value)));
    }

    private static BadRequestException unknown(String name, String input) {
        Set<String> taken = new TreeSet<>(SUPPORTED);
        taken.add(input);
        return new BadRequestException(
                400,
                "unknown_parameter",
                name,
                "there is no parameter '%s'; allowed: %s".formatted(shorten(name), String.join(", ", taken)));
    }

    /// A value as a message shows it.
    static String describe(JsonNode value) {
        return shorten(value.toString());
    }

    /// A name as a message shows it.
    static String shorten(String text) {
        return text.length() <= MAX_SHOWN_CHARACTERS ? text : text.substring(0, MAX_SHOWN_CHARACTERS) + "…";
    }
}
