package io.kvcache.engines.chat;

import io.kvcache.engines.jlama.ChatMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// What a request asks for, out of its JSON.
///
/// @param chat whether it is a chat, else a text to go on with
/// @param messages of the chat
/// @param prompt the text
/// @param maxTokens of the answer
/// @param temperature as the protocol has it, 0 to 2
/// @param seed decides what is drawn
/// @param stops texts that end the answer
/// @param stream whether the answer comes in pieces
/// @param includeUsage whether the last piece says how many tokens it took
record CompletionRequest(
        boolean chat,
        List<ChatMessage> messages,
        String prompt,
        int maxTokens,
        float temperature,
        long seed,
        List<String> stops,
        boolean stream,
        boolean includeUsage) {

    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final double MAX_TEMPERATURE = 2;
    private static final int MAX_STOPS = 4;

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
        RequestParameters.check(root, chat ? "messages" : "prompt", temperature == 0);
        return new CompletionRequest(
                chat,
                chat ? messages(root) : List.of(),
                chat ? "" : prompt(root),
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
                    "model", "model is " + RequestParameters.describe(given) + "; it takes the name of a model");
        }
        if (!given.stringValue().equals(model)) {
            throw new BadRequestException(
                    404,
                    "model_not_found",
                    "model",
                    "the model '" + RequestParameters.shorten(given.stringValue()) + "' is not here; this server has '"
                            + model + "'");
        }
    }

    private static List<ChatMessage> messages(JsonNode root) throws BadRequestException {
        JsonNode given = root.path("messages");
        if (!given.isArray() || given.isEmpty()) {
            throw BadRequestException.invalidValue("messages", "messages is no array of at least one message");
        }
        List<ChatMessage> messages = new ArrayList<>();
        for (JsonNode each : given) {
            RequestParameters.checkMessage(each);
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

    private static String prompt(JsonNode root) throws BadRequestException {
        JsonNode given = root.path("prompt");
        JsonNode text = given.isArray() && given.size() == 1 ? given.get(0) : given;
        if (!text.isString()) {
            throw BadRequestException.invalidValue("prompt", "prompt is no text");
        }
        return text.stringValue();
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
}
