package io.kvcache.server.keyspace;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The two keys under which LMCache's Redis connectors store one thing: `<key>metadata` and `<key>kv_bytes`.
///
/// One without the other is worse than none: metadata alone promises bytes that are gone. The suffixes are glued on,
/// or behind a colon, which makes no difference here.
final class LmcacheKeyPair {

    private static final byte[] METADATA_SUFFIX = "metadata".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] BYTES_SUFFIX = "kv_bytes".getBytes(StandardCharsets.US_ASCII);

    private LmcacheKeyPair() {}

    /// The key of the other half, or null when the key has neither suffix.
    static byte @Nullable [] otherKey(byte[] key) {
        if (endsWith(key, METADATA_SUFFIX)) {
            return replaceSuffix(key, BYTES_SUFFIX);
        }
        return endsWith(key, BYTES_SUFFIX) ? replaceSuffix(key, METADATA_SUFFIX) : null;
    }

    /// Bytes of a key before such a suffix and the colon before it; all of them when it has none.
    static int baseLength(byte[] key) {
        if (!endsWith(key, METADATA_SUFFIX) && !endsWith(key, BYTES_SUFFIX)) {
            return key.length;
        }
        int base = key.length - BYTES_SUFFIX.length;
        return key[base - 1] == ':' ? base - 1 : base;
    }

    private static boolean endsWith(byte[] key, byte[] suffix) {
        int from = key.length - suffix.length;
        return from > 0 && Arrays.equals(key, from, key.length, suffix, 0, suffix.length);
    }

    /// Both suffixes have eight letters.
    private static byte[] replaceSuffix(byte[] key, byte[] suffix) {
        byte[] other = key.clone();
        System.arraycopy(suffix, 0, other, key.length - suffix.length, suffix.length);
        return other;
    }
}
