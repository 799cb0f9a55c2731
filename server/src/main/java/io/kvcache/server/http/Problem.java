package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.Locale;

/// What is answered instead of what was asked for: an error as RFC 9457 has it.
///
/// @param detail a sentence for people
record Problem(HttpResponseStatus status, String detail) {

    static final String CONTENT_TYPE = "application/problem+json";

    String json() {
        return "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}%n"
                .formatted(escaped(status.reasonPhrase()), status.code(), escaped(detail));
    }

    private static String escaped(String text) {
        StringBuilder escaped = new StringBuilder(text.length() + 16);
        text.chars().forEach(each -> {
            if (each == '"' || each == '\\') {
                escaped.append('\\').append((char) each);
            } else if (each < ' ' || each > '~') {
                escaped.append(String.format(Locale.ROOT, "\\u%04x", each));
            } else {
                escaped.append((char) each);
            }
        });
        return escaped.toString();
    }
}
