package io.kvcache.server.http;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/// Decodes percent-encoded paths.
public final class PercentDecoder {

    private PercentDecoder() {}

    /// The text, or null when its percent-encoding or its UTF-8 is broken.
    public static @Nullable String decode(String piece) {
        byte[] bytes = decodeBytes(piece, 0);
        if (bytes == null) {
            return null;
        }
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(bytes))
                    .toString();
        } catch (CharacterCodingException _) {
            return null;
        }
    }

    /// The bytes of a text from an index on, or null when its encoding is broken.
    static byte @Nullable [] decodeBytes(String text, int from) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = from; i < text.length(); i++) {
            char each = text.charAt(i);
            if (each != '%') {
                bytes.write(each);
                continue;
            }
            if (i + 2 >= text.length()
                    || !HexFormat.isHexDigit(text.charAt(i + 1))
                    || !HexFormat.isHexDigit(text.charAt(i + 2))) {
                return null;
            }
            bytes.write(HexFormat.fromHexDigits(text, i + 1, i + 3));
            i += 2;
        }
        return bytes.toByteArray();
    }
}
