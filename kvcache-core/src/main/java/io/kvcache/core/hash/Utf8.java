package io.kvcache.core.hash;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/// Strict UTF-8. `String.getBytes` replaces half a surrogate pair by a question mark, so two texts could share
/// their bytes, and with them a name.
public final class Utf8 {

    private Utf8() {}

    /// The UTF-8 bytes of a text.
    ///
    /// @param field what the text is, for the message; the text itself may be secret and is not shown
    /// @throws IllegalArgumentException when the text holds half a surrogate pair
    public static byte[] encode(String field, String text) {
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return bytes;
        } catch (CharacterCodingException e) {
            throw new IllegalArgumentException(
                    "%s holds half a surrogate pair; allowed: well-formed Unicode".formatted(field), e);
        }
    }
}
