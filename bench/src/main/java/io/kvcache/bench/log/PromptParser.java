package io.kvcache.bench.log;

import io.kvcache.bench.log.LoggedPrompt.LoggedMessage;
import io.kvcache.bench.log.LoggedPrompt.Role;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/// The members of a request that a model reads, each an error that names it when it is not what it must be.
///
/// `tools` and `instructions` stand before all messages, as engines put them; what an assistant
/// called stands behind what it said.
final class PromptParser {

    private PromptParser() {}

    static LoggedPrompt prompt(JsonNode request) {
        if (request.has("messages")) {
            return chat(request, request.path("messages"), "messages");
        }
        if (request.has("prompt")) {
            return completion(request.path("prompt"));
        }
        JsonNode input = request.path("input");
        if (input.isArray()) {
            return chat(request, input, "input");
        }
        if (input.isString()) {
            List<LoggedMessage> turns = preamble(request);
            turns.add(new LoggedMessage(Role.USER, input.stringValue()));
            return new LoggedPrompt.Chat(turns);
        }
        throw new IllegalArgumentException("is no request: it has none of messages, prompt and input");
    }

    private static LoggedPrompt completion(JsonNode prompt) {
        JsonNode one = prompt.isArray() && prompt.size() == 1 && !prompt.get(0).isNumber() ? prompt.get(0) : prompt;
        if (one.isString()) {
            return new LoggedPrompt.Text(one.stringValue());
        }
        if (!one.isArray() || one.isEmpty()) {
            throw new IllegalArgumentException("prompt must be a text or an array of token ids");
        }
        int[] tokens = new int[one.size()];
        for (int i = 0; i < tokens.length; i++) {
            JsonNode token = one.get(i);
            if (!token.isIntegralNumber() || !token.canConvertToInt() || token.intValue() < 0) {
                throw new IllegalArgumentException("prompt[" + i + "] is " + abbreviate(token)
                        + ", must be a token id; several prompts in one request are not known");
            }
            tokens[i] = token.intValue();
        }
        return new LoggedPrompt.Tokens(tokens);
    }

    private static LoggedPrompt chat(JsonNode request, JsonNode messages, String field) {
        if (!messages.isArray() || messages.isEmpty()) {
            throw new IllegalArgumentException(field + " must be an array of messages, at least one");
        }
        List<LoggedMessage> turns = preamble(request);
        for (int i = 0; i < messages.size(); i++) {
            turns.add(turn(messages.get(i), field + "[" + i + "]"));
        }
        return new LoggedPrompt.Chat(turns);
    }

    private static List<LoggedMessage> preamble(JsonNode request) {
        List<LoggedMessage> turns = new ArrayList<>();
        JsonNode tools = request.path("tools");
        if (tools.isArray() && !tools.isEmpty()) {
            turns.add(new LoggedMessage(Role.SYSTEM, tools.toString()));
        }
        JsonNode instructions = request.path("instructions");
        if (instructions.isString()) {
            turns.add(new LoggedMessage(Role.SYSTEM, instructions.stringValue()));
        }
        return turns;
    }

    private static LoggedMessage turn(JsonNode message, String where) {
        JsonNode role = message.path("role");
        Role known = switch (role.isString() ? role.stringValue() : "") {
            case "system", "developer" -> Role.SYSTEM;
            case "user", "tool", "function" -> Role.USER;
            case "assistant" -> Role.ASSISTANT;
            default ->
                throw new IllegalArgumentException(where + ".role is " + abbreviate(role)
                        + ", must be one of system, developer, user, assistant, tool, function");
        };
        JsonNode calls = message.path("tool_calls");
        String content = content(message.path("content"), where + ".content");
        return new LoggedMessage(known, calls.isArray() ? content + calls : content);
    }

    private static String content(JsonNode content, String where) {
        if (content.isString()) {
            return content.stringValue();
        }
        if (content.isNull() || content.isMissingNode()) {
            return "";
        }
        if (!content.isArray()) {
            throw new IllegalArgumentException(where + " must be a text or an array of parts");
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < content.size(); i++) {
            JsonNode part = content.get(i).path("text");
            if (!part.isString()) {
                throw new IllegalArgumentException(where + "[" + i + "] is of type "
                        + abbreviate(content.get(i).path("type")) + ": only parts with a text are known");
            }
            text.append(part.stringValue());
        }
        return text.toString();
    }

    /// Nobody's words get into an error.
    private static String abbreviate(JsonNode node) {
        String text = node.toString();
        return text.isEmpty() ? "missing" : text.length() <= 24 ? text : text.substring(0, 24) + "…";
    }
}
