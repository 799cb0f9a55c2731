package io.kvcache.planner.log;

import io.kvcache.planner.log.LoggedRequest.LoggedPrompt.LoggedMessage;
import io.kvcache.planner.log.LoggedRequest.LoggedPrompt.Role;
import java.time.DateTimeException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// One line of a log of requests.
///
/// The request is the line itself, or its member `request` or `body`, if that is an object; it has
/// `messages` (chat), `prompt` (a text, or an array of token ids) or `input` (a text or messages).
/// The answer is the member `response`, or its `body`, if the line has one, else the line. The time
/// is `timestamp`, `created_at` or `created` of the line, else of the answer: a text by ISO 8601,
/// or a number, of seconds below 1e11 and of milliseconds from there on.
///
/// @param atMillis when it came; null when the line does not say
/// @param outputTokens of the answer by its `usage`, or -1
/// @param promptTokens of the prompt by its `usage`, or -1
/// @param answer its text, or null
public record LoggedRequest(
        @Nullable Long atMillis,
        LoggedPrompt prompt,
        int outputTokens,
        int promptTokens,
        @Nullable String answer) {

    private static final double MIN_EPOCH_MILLIS = 1e11;
    private static final List<String> TIME_FIELDS = List.of("timestamp", "created_at", "created");

    /// Understands a line.
    ///
    /// @throws IllegalArgumentException that says what is wrong with it
    static LoggedRequest of(JsonNode line) {
        if (!line.isObject()) {
            throw new IllegalArgumentException("is not a JSON object");
        }
        JsonNode response = line.path("response");
        JsonNode answer =
                response.path("body").isObject() ? response.path("body") : response.isObject() ? response : line;
        Long at = time(line);
        return new LoggedRequest(
                at == null ? time(answer) : at,
                PromptParser.prompt(request(line)),
                usage(answer, "completion_tokens", "output_tokens"),
                usage(answer, "prompt_tokens", "input_tokens"),
                text(answer));
    }

    private static JsonNode request(JsonNode line) {
        for (String member : List.of("request", "body")) {
            if (line.path(member).isObject()) {
                return line.path(member);
            }
        }
        return line;
    }

    private static @Nullable Long time(JsonNode object) {
        for (String field : TIME_FIELDS) {
            JsonNode value = object.path(field);
            if (value.isNumber()) {
                double number = value.doubleValue();
                double millis = number < MIN_EPOCH_MILLIS ? 1000 * number : number;
                if (!(millis >= 0 && millis < 1e15)) {
                    throw new IllegalArgumentException(field + " is " + value + ", must be a time from 1970 on");
                }
                return Math.round(millis);
            }
            if (value.isString()) {
                return instant(field, value.stringValue());
            }
        }
        return null;
    }

    private static long instant(String field, String text) {
        try {
            return OffsetDateTime.parse(text).toInstant().toEpochMilli();
        } catch (DateTimeException e) {
            throw new IllegalArgumentException(
                    field + " is '" + text + "', must be a number or a time such as 2026-01-31T12:00:00Z", e);
        }
    }

    private static int usage(JsonNode answer, String name, String otherName) {
        JsonNode usage = answer.path("usage");
        JsonNode count = usage.has(name) ? usage.path(name) : usage.path(otherName);
        return count.isIntegralNumber() && count.canConvertToInt() ? Math.max(-1, count.intValue()) : -1;
    }

    private static @Nullable String text(JsonNode answer) {
        JsonNode choice = answer.path("choices").path(0);
        JsonNode text = choice.has("text")
                ? choice.path("text")
                : choice.path("message").path("content");
        return text.isString() ? Objects.requireNonNull(text.stringValue()) : null;
    }

    /// The members of a request that a model reads, each an error that names it when it is not what it must be.
    ///
    /// `tools` and `instructions` stand before all messages, as engines put them; what an assistant
    /// called stands behind what it said.
    private static final class PromptParser {

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
            throw new IllegalArgumentException("is not a request: it has none of messages, prompt and input");
        }

        private static LoggedPrompt completion(JsonNode prompt) {
            JsonNode one =
                    prompt.isArray() && prompt.size() == 1 && !prompt.get(0).isNumber() ? prompt.get(0) : prompt;
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
                    throw new IllegalArgumentException(
                            "prompt[" + i + "] is " + (token.isString() ? "a text" : abbreviate(token))
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

        /// Returns what an error may quote of a value: a number, or a text that looks like an identifier. Other texts
        /// may be what a user wrote, so an error only tells their length.
        private static String abbreviate(JsonNode node) {
            if (node.isMissingNode()) {
                return "missing";
            }
            if (node.isString() && !node.stringValue().matches("[a-z_]{1,24}")) {
                return "a text of " + node.stringValue().length() + " characters";
            }
            return node.isContainer() ? "a JSON " + (node.isArray() ? "array" : "object") : node.toString();
        }
    }

    /// The prompt of a logged request.
    public sealed interface LoggedPrompt {

        /// A text as it is.
        record Text(String text) implements LoggedPrompt {}

        /// A chat that is to be answered.
        record Chat(List<LoggedMessage> turns) implements LoggedPrompt {}

        /// Tokens that the client had made itself.
        @SuppressWarnings("ArrayRecordComponent") // nothing compares them
        record Tokens(int[] tokens) implements LoggedPrompt {}

        /// One message of a chat.
        record LoggedMessage(Role role, String content) {}

        /// The speaker of a message. Answers of tools count as the user's, since the model reads them.
        enum Role {
            SYSTEM,
            USER,
            ASSISTANT
        }
    }
}
