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
final class Parameters {

    private static final int SHOWN_CHARACTERS = 80;

    private static final Set<String> TAKEN = Set.of(
            "model", "max_tokens", "max_completion_tokens", "temperature", "seed", "stop", "stream", "stream_options");

    /// They say something about the request, and nothing about its answer.
    private static final Set<String> WITHOUT_EFFECT = Set.of(
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
    private static final Map<String, Predicate<JsonNode>> REFUSED = Map.ofEntries(
            Map.entry("audio", _ -> false),
            Map.entry("best_of", Parameters::one),
            Map.entry("echo", Parameters::no),
            Map.entry("frequency_penalty", Parameters::zero),
            Map.entry("function_call", Parameters::noTool),
            Map.entry("functions", Parameters::empty),
            Map.entry("logit_bias", Parameters::empty),
            Map.entry("logprobs", Parameters::no),
            Map.entry("min_p", Parameters::zero),
            Map.entry(
                    "modalities",
                    value -> value.size() == 1 && value.path(0).asString("").equals("text")),
            Map.entry("n", Parameters::one),
            Map.entry("presence_penalty", Parameters::zero),
            Map.entry("reasoning_effort", value -> value.asString("").equals("none")),
            Map.entry("repetition_penalty", Parameters::one),
            Map.entry(
                    "response_format", value -> value.path("type").asString("").equals("text")),
            Map.entry("suffix", value -> value.asString("-").isEmpty()),
            Map.entry("tool_choice", Parameters::noTool),
            Map.entry("tools", Parameters::empty),
            Map.entry("top_k", value -> value.isNumber() && value.doubleValue() <= 0),
            Map.entry("top_logprobs", Parameters::zero),
            Map.entry("top_p", Parameters::one),
            Map.entry("verbosity", value -> value.asString("").equals("medium")),
            Map.entry("web_search_options", _ -> false));

    /// They choose among the likelier tokens, so they change nothing where the likeliest one is taken.
    private static final Set<String> FOR_SAMPLING = Set.of("min_p", "top_k", "top_p");

    private static final Set<String> REFUSED_IN_MESSAGES =
            Set.of("audio", "function_call", "tool_call_id", "tool_calls");

    private Parameters() {}

    /// Checks all names, and the values of what is refused.
    ///
    /// @param input the parameter with the prompt, `messages` or `prompt`
    /// @param greedy whether the request takes the likeliest token
    static void check(JsonNode root, String input, boolean greedy) throws BadRequest {
        for (Map.Entry<String, JsonNode> each : root.properties()) {
            String name = each.getKey();
            JsonNode value = each.getValue();
            Predicate<JsonNode> neutral = REFUSED.get(name);
            if (neutral != null) {
                boolean noEffect = greedy && FOR_SAMPLING.contains(name) && value.isNumber();
                if (!value.isNull() && !noEffect && !neutral.test(value)) {
                    throw unsupported(name, value);
                }
            } else if (!TAKEN.contains(name) && !WITHOUT_EFFECT.contains(name) && !name.equals(input)) {
                throw unknown(name, input);
            }
        }
    }

    /// Checks what one message has beside its role and content.
    static void checkMessage(JsonNode message) throws BadRequest {
        for (String name : REFUSED_IN_MESSAGES) {
            JsonNode value = message.path(name);
            if (!value.isMissingNode() && !value.isNull() && !empty(value)) {
                throw unsupported("messages." + name, value);
            }
        }
    }

    private static boolean empty(JsonNode value) {
        return value.isContainer() && value.isEmpty();
    }

    private static boolean zero(JsonNode value) {
        return value.isNumber() && value.doubleValue() == 0;
    }

    private static boolean one(JsonNode value) {
        return value.isNumber() && value.doubleValue() == 1;
    }

    private static boolean no(JsonNode value) {
        return value.isBoolean() && !value.booleanValue();
    }

    private static boolean noTool(JsonNode value) {
        return Set.of("none", "auto").contains(value.asString(""));
    }

    private static BadRequest unsupported(String name, JsonNode value) {
        return new BadRequest(
                400,
                "unsupported_parameter",
                name,
                "%s is %s; this server does not support it and would give another answer than asked for: leave it out"
                        .formatted(name, shown(value)));
    }

    private static BadRequest unknown(String name, String input) {
        Set<String> taken = new TreeSet<>(TAKEN);
        taken.add(input);
        return new BadRequest(
                400,
                "unknown_parameter",
                name,
                "there is no parameter '%s'; allowed: %s".formatted(shortened(name), String.join(", ", taken)));
    }

    /// A value as a message shows it.
    static String shown(JsonNode value) {
        return shortened(value.toString());
    }

    /// A name as a message shows it.
    static String shortened(String text) {
        return text.length() <= SHOWN_CHARACTERS ? text : text.substring(0, SHOWN_CHARACTERS) + "…";
    }
}
