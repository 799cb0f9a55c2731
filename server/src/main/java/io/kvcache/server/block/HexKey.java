package io.kvcache.server.block;

import io.kvcache.core.identity.EngineKey;
import java.util.HexFormat;

/// An engine's key as clients write it: in hexadecimal, since most keys are digests.
final class HexKey {

    private static final int MAX_DIGITS = 2 * 4096;

    private HexKey() {}

    /// The bytes of a key.
    ///
    /// @throws IllegalArgumentException that says what a key takes
    static byte[] bytes(String text) {
        if (text.isEmpty() || text.length() > MAX_DIGITS || text.length() % 2 != 0 || !isHexadecimal(text)) {
            throw new IllegalArgumentException(
                    "a key takes 2 to " + MAX_DIGITS + " hexadecimal digits, two for each byte");
        }
        return HexFormat.of().parseHex(text);
    }

    static EngineKey parse(String text) {
        return EngineKey.of(bytes(text));
    }

    private static boolean isHexadecimal(String text) {
        return text.chars().allMatch(HexFormat::isHexDigit);
    }
}
