package io.kvcache.engines.chat;

import io.kvcache.engines.generator.ChatMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The parameters of a request, read from its JSON.
///
/// Some parameters change nothing in an answer and are ignored. Others are refused, because ignoring them would
/// give another answer than the one that was asked for; a client that fills in every default may still send the
/// value that asks for nothing.
///
/// @param chat whether it is a chat, else a text to go on with
/// @param messages of the chat
/// @param prompt to go on with
/// @param maxTokens of the answer
/// @param temperature as the protocol has it, 0 to 2
/// @param seed decides what is drawn
/// @param stops texts that end the answer
/// @param stream whether the answer comes in pieces
/// @param includeUsage whether the last piece says how many tokens it took
record CompletionRequest(
        boolean chat,
        List<ChatMessage> messages,
        CompletionPrompt prompt,
        int maxTokens,
        float temperature,
        long seed,
        List<String> stops,
        boolean stream,
        boolean includeUsage) {

    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final double MAX_TEMPERATURE = 2;
    private static final int MAX_STOPS = 4;
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

    /// Unsupported parameters, with the values that leave them off.
    private static final Map<String, Predicate<JsonNode>> UNSUPPORTED = Map.ofEntries(
            Map.entry("audio", _ -> false),
            Map.entry("best_of", CompletionRequest::isOne),
            Map.entry("echo", CompletionRequest::isFalse),
            Map.entry("frequency_penalty", CompletionRequest::isZero),
            Map.entry("function_call", CompletionRequest::isNoTool),
            Map.entry("functions", CompletionRequest::isEmpty),
            Map.entry("logit_bias", CompletionRequest::isEmpty),
            Map.entry("logprobs", CompletionRequest::isFalse),
            Map.entry("min_p", CompletionRequest::isZero),
            Map.entry(
                    "modalities",
                    value -> value.size() == 1 && value.path(0).asString("").equals("text")),
            Map.entry("n", CompletionRequest::isOne),
            Map.entry("presence_penalty", CompletionRequest::isZero),
            Map.entry("reasoning_effort", value -> value.asString("").equals("none")),
            Map.entry("repetition_penalty", CompletionRequest::isOne),
            Map.entry(
                    "response_format", value -> value.path("type").asString("").equals("text")),
            Map.entry("suffix", value -> value.asString("-").isEmpty()),
            Map.entry("tool_choice", CompletionRequest::isNoTool),
            Map.entry("tools", CompletionRequest::isEmpty),
            Map.entry("top_k", value -> value.isNumber() && value.doubleValue() <= 0),
            Map.entry("top_logprobs", CompletionRequest::isZero),
            Map.entry("top_p", CompletionRequest::isOne),
            Map.entry("verbosity", value -> value.asString("").equals("medium")),
            Map.entry("web_search_options", _ -> false));

    /// They choose among the likelier tokens, so they change nothing where the likeliest one is taken.
    private static final Set<String> SAMPLING_ONLY = Set.of("min_p", "top_k", "top_p");

    private static final Set<String> UNSUPPORTED_IN_MESSAGES =
            Set.of("audio", "function_call", "tool_call_id", "tool_calls");

    /// Reads a body.
    ///
    /// @param defaultTokens of the answer when the request does not say
    /// @param model the one that is served
    static CompletionRequest parse(boolean chat, byte[] body, int defaultTokens, String model)
            throws BadRequestException {
        JsonNode root;
        try {
            root = JSON.readTree(body);
        } catch (JacksonException malformed) {
            String reason = String.valueOf(malformed.getOriginalMessage());
            throw BadRequestException.invalidBody(
                    "the body is no JSON: " + reason.replaceFirst(" \\(start marker at \\[.*\\]\\)$", ""));
        }
        if (!root.isObject()) {
            throw BadRequestException.invalidBody("the body is no JSON object");
        }
        checkModel(root, model);
        float temperature = temperature(root);
        checkParameters(root, chat ? "messages" : "prompt", temperature == 0);
        return new CompletionRequest(
                chat,
                chat ? messages(root) : List.of(),
                chat ? new CompletionPrompt.Text("") : prompt(root),
                tokens(root, defaultTokens),
                temperature,
                seed(root),
                stops(root),
                flag(root, "stream"),
                isPresent(root, "stream_options") && flag(root.get("stream_options"), "include_usage"));
    }

    private static boolean isPresent(JsonNode node, String name) {
        return node.hasNonNull(name);
    }

    /// A client that names no model gets the one there is.
    private static void checkModel(JsonNode root, String model) throws BadRequestException {
        if (!isPresent(root, "model")) {
            return;
        }
        JsonNode given = root.get("model");
        if (!given.isString()) {
            throw BadRequestException.invalidValue(
                    "model", "model is " + describe(given) + "; it takes the name of a model");
        }
        if (!given.stringValue().equals(model)) {
            throw new BadRequestException(
                    404,
                    "model_not_found",
                    "model",
                    "the model '" + shorten(given.stringValue()) + "' is not here; this server has '" + model + "'");
        }
    }

    private static List<ChatMessage> messages(JsonNode root) throws BadRequestException {
        JsonNode given = root.path("messages");
        if (!given.isArray() || given.isEmpty()) {
            throw BadRequestException.invalidValue("messages", "messages is not an array of at least one message");
        }
        List<ChatMessage> messages = new ArrayList<>();
        for (JsonNode each : given) {
            checkMessage(each);
            messages.add(new ChatMessage(role(each.path("role")), content(each.path("content"))));
        }
        return messages;
    }

    private static ChatMessage.Role role(JsonNode given) throws BadRequestException {
        return switch (given.asString("").toLowerCase(Locale.ROOT)) {
            case "system", "developer" -> ChatMessage.Role.SYSTEM;
            case "user" -> ChatMessage.Role.USER;
            case "assistant" -> ChatMessage.Role.ASSISTANT;
            default ->
                throw BadRequestException.invalidValue(
                        "messages.role", "role is " + given + "; allowed: system, developer, user, assistant");
        };
    }

    /// A text, or an array of parts that are all text.
    private static String content(JsonNode given) throws BadRequestException {
        if (given.isString()) {
            return given.stringValue();
        }
        StringBuilder text = new StringBuilder();
        for (JsonNode part : given) {
            if (!part.path("text").isString()) {
                throw BadRequestException.invalidValue(
                        "messages.content", "a part of content has no text; text is all this takes");
            }
            text.append(part.path("text").stringValue());
        }
        if (!given.isArray()) {
            throw BadRequestException.invalidValue(
                    "messages.content", "content is neither a text nor an array of parts");
        }
        return text.toString();
    }

    /// A text or the tokens of one, as themselves or as the only element of an array.
    private static CompletionPrompt prompt(JsonNode root) throws BadRequestException {
        JsonNode given = root.path("prompt");
        JsonNode only = given.isArray() && given.size() == 1 && !given.get(0).isNumber() ? given.get(0) : given;
        if (only.isString()) {
            return new CompletionPrompt.Text(only.stringValue());
        }
        if (!only.isArray() || only.isEmpty()) {
            throw BadRequestException.invalidValue(
                    "prompt", "prompt is " + describe(given) + "; it takes a string or an array of tokens");
        }
        if (!only.get(0).isNumber()) {
            throw BadRequestException.invalidValue(
                    "prompt", "prompt has " + only.size() + " prompts; this server takes one a request");
        }
        int[] tokens = new int[only.size()];
        for (int i = 0; i < tokens.length; i++) {
            JsonNode token = only.get(i);
            if (!token.isIntegralNumber() || !token.canConvertToInt()) {
                throw BadRequestException.invalidValue(
                        "prompt", "element " + i + " of prompt is " + describe(token) + "; it takes a token's number");
            }
            tokens[i] = token.intValue();
        }
        return new CompletionPrompt.Tokens(tokens);
    }

    private static int tokens(JsonNode root, int defaultTokens) throws BadRequestException {
        String name = isPresent(root, "max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
        if (!isPresent(root, name)) {
            return defaultTokens;
        }
        JsonNode given = root.get(name);
        if (!given.canConvertToInt() || !given.isIntegralNumber() || given.intValue() < 1) {
            throw BadRequestException.invalidValue(name, name + " is " + given + "; it takes 1 and up");
        }
        return given.intValue();
    }

    private static float temperature(JsonNode root) throws BadRequestException {
        if (!isPresent(root, "temperature")) {
            return 1;
        }
        JsonNode given = root.get("temperature");
        if (!given.isNumber() || !(given.doubleValue() >= 0 && given.doubleValue() <= MAX_TEMPERATURE)) {
            throw BadRequestException.invalidValue("temperature", "temperature is " + given + "; allowed: 0 to 2");
        }
        return (float) given.doubleValue();
    }

    private static long seed(JsonNode root) throws BadRequestException {
        if (!isPresent(root, "seed")) {
            return ThreadLocalRandom.current().nextLong();
        }
        if (!root.get("seed").isIntegralNumber() || !root.get("seed").canConvertToLong()) {
            throw BadRequestException.invalidValue(
                    "seed", "seed is " + root.get("seed") + "; it takes a whole number of 64 bits");
        }
        return root.get("seed").longValue();
    }

    private static List<String> stops(JsonNode root) throws BadRequestException {
        if (!isPresent(root, "stop")) {
            return List.of();
        }
        JsonNode given = root.get("stop");
        List<String> stops = new ArrayList<>();
        for (JsonNode each : given.isArray() ? given : List.of(given)) {
            if (!each.isString() || each.stringValue().isEmpty()) {
                throw BadRequestException.invalidValue("stop", "stop is " + given + "; it takes a text or up to four");
            }
            stops.add(each.stringValue());
        }
        if (stops.size() > MAX_STOPS) {
            throw BadRequestException.invalidValue("stop", "stop has " + stops.size() + " texts; it takes up to four");
        }
        return stops;
    }

    private static boolean flag(JsonNode node, String name) throws BadRequestException {
        if (!isPresent(node, name)) {
            return false;
        }
        if (!node.get(name).isBoolean()) {
            throw BadRequestException.invalidValue(name, name + " is " + node.get(name) + "; allowed: true, false");
        }
        return node.get(name).booleanValue();
    }

    /// Checks all names, and the values of what is refused.
    ///
    /// @param input the parameter with the prompt, `messages` or `prompt`
    /// @param greedy whether the request takes the likeliest token
    private static void checkParameters(JsonNode root, String input, boolean greedy) throws BadRequestException {
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
    private static void checkMessage(JsonNode message) throws BadRequestException {
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
                "parameter '%s' is unknown; allowed: %s".formatted(shorten(name), String.join(", ", taken)));
    }

    private static String describe(JsonNode value) {
        return shorten(value.toString());
    }

    private static String shorten(String text) {
        return text.length() <= MAX_SHOWN_CHARACTERS ? text : text.substring(0, MAX_SHOWN_CHARACTERS) + "…";
    }

    /// What a completion goes on with.
    sealed interface CompletionPrompt {

        /// A text, for the model's tokenizer.
        record Text(String text) implements CompletionPrompt {}

        /// Tokens as they are, at least one; nothing is put before them.
        @SuppressWarnings("ArrayRecordComponent")
        record Tokens(int[] tokens) implements CompletionPrompt {}
    }

    /// A request that cannot be answered, and why.
    static final class BadRequestException extends Exception {

        private static final long serialVersionUID = 1;

        private static final int BAD_REQUEST = 400;

        private final int status;
        private final String code;
        private final String field;

        /// @param status of the answer, 400 or 404
        /// @param code for programs, as OpenAI names it where it has a name
        /// @param field the request's field that is wrong; empty for the request itself
        BadRequestException(int status, String code, String field, String message) {
            super(message);
            this.status = status;
            this.code = code;
            this.field = field;
        }

        static BadRequestException invalidValue(String field, String message) {
            return new BadRequestException(BAD_REQUEST, "invalid_value", field, message);
        }

        /// A body that is not what it must be.
        static BadRequestException invalidBody(String message) {
            return new BadRequestException(BAD_REQUEST, "invalid_json", "", message);
        }

        int status() {
            return status;
        }

        String json() {
            return CompletionResponses.error("invalid_request_error", code, field, String.valueOf(getMessage()));
        }
    }
}
