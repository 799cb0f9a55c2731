package io.kvcache.server.http;

import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// Writes JSON in ASCII; escapes all other characters.
public final class Json {

    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(tools.jackson.core.json.JsonWriteFeature.ESCAPE_NON_ASCII)
            .build();

    private Json() {}

    /// Maps, lists, records, strings and numbers as a line of JSON.
    public static String text(Object value) {
        return MAPPER.writeValueAsString(value) + "\n";
    }

    /// Why a text is not JSON, without the library's words on where it came from.
    static String describeError(JacksonException malformed) {
        return String.valueOf(malformed.getOriginalMessage()).replaceFirst(" \\(start marker at \\[.*\\]\\)$", "");
    }

    static JsonMapper mapper() {
        return MAPPER;
    }
}
