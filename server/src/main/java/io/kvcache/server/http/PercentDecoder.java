package io.kvcache.server.http;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/// A piece of a path as text.
public final class PercentDecoder {

    private PercentDecoder() {}

    /// The text, or null when its percent-encoding or its UTF-8 is broken.
    public static @Nullable String decode(String piece) {
        byte[] bytes = ObjectPath.decode(piece, 0);
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
}
