package io.kvcache.server.client;

import java.nio.charset.StandardCharsets;

/// What a server answered.
///
/// @param isPresent false for "there is none"
/// @param bytes of the text, number or value
@SuppressWarnings("ArrayRecordComponent") // never compared
public record RespReply(boolean isPresent, byte[] bytes) {

    /// The answer as text.
    public String asText() {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /// The answer as a number.
    public long asLong() {
        return Long.parseLong(asText());
    }
}
