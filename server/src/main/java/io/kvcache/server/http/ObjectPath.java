package io.kvcache.server.http;

import java.io.ByteArrayOutputStream;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/// The path of an object: `/v1/objects/` and the key, whose bytes may be percent-encoded.
final class ObjectPath {

    static final String PREFIX = "/v1/objects/";

    private ObjectPath() {}

    /// The key's bytes, or null when the encoding is broken.
    ///
    /// @param path begins with [#PREFIX]
    static byte @Nullable [] parseKey(String path) {
        return decode(path, PREFIX.length());
    }

    /// The bytes of a percent-encoded text from a place on, or null when the encoding is broken.
    static byte @Nullable [] decode(String path, int from) {
        ByteArrayOutputStream key = new ByteArrayOutputStream();
        for (int i = from; i < path.length(); i++) {
            char each = path.charAt(i);
            if (each != '%') {
                key.write(each);
                continue;
            }
            if (i + 2 >= path.length()
                    || !HexFormat.isHexDigit(path.charAt(i + 1))
                    || !HexFormat.isHexDigit(path.charAt(i + 2))) {
                return null;
            }
            key.write(HexFormat.fromHexDigits(path, i + 1, i + 3));
            i += 2;
        }
        return key.toByteArray();
    }
}
