package io.kvcache.bench.log;

import java.time.DateTimeException;
import java.time.OffsetDateTime;
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
record LoggedRequest(
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
}
