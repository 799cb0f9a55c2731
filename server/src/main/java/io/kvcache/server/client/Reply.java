package io.kvcache.server.client;

import java.nio.charset.StandardCharsets;

/// What a server answered.
///
/// @param here false for "there is none"
/// @param bytes of the text, number or value
@SuppressWarnings("ArrayRecordComponent") // never compared
public record Reply(boolean here, byte[] bytes) {

    /// The answer as text.
    public String text() {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /// The answer as a number.
    public long number() {
        return Long.parseLong(text());
    }
}
