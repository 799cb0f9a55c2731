package io.kvcache.server.keyspace;

import io.kvcache.core.engine.EngineValueKey;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// A key of LMCache ([EngineValueKey]): fields between `@`, one of which is the digest of a chunk of tokens and of all
/// before it. All but digest and half ([ObjectKey]) is the **stem**: model, worker and the like.
///
/// @param key not to be changed
/// @param from where the digest begins
/// @param to where it ends
/// @param end where the key ends without what makes it a half
/// @param digest as it stands in the key
@SuppressWarnings("ArrayRecordComponent") // never compared
public record ChunkKey(byte[] key, int from, int to, int end, String digest) {

    /// The parts of a key, or null when it does not look like one of LMCache's.
    public static @Nullable ChunkKey of(byte[] key) {
        long digest = EngineValueKey.findDigest(key);
        if (digest == EngineValueKey.NO_DIGEST) {
            return null;
        }
        int from = (int) (digest >>> Integer.SIZE);
        int to = (int) digest;
        return new ChunkKey(
                key,
                from,
                to,
                EngineValueKey.baseLength(key),
                new String(key, from, to - from, StandardCharsets.ISO_8859_1));
    }

    /// Returns whether a key looks like one of LMCache's.
    static boolean isChunk(byte[] key) {
        return EngineValueKey.findDigest(key) != EngineValueKey.NO_DIGEST;
    }

    /// Returns whether two are chunks of the same model, for the same worker.
    boolean isSameModel(ChunkKey other) {
        return Arrays.equals(key, 0, from, other.key, 0, other.from)
                && Arrays.equals(key, to, end, other.key, other.to, other.end);
    }

    /// Returns the key with `*` in the place of the digest, and without what makes it a half: model and worker.
    String stem() {
        int sign = from > 0 && key[from - 1] == '-' ? 1 : 0;
        return new String(key, 0, from - sign, StandardCharsets.UTF_8)
                + "*"
                + new String(key, to, end - to, StandardCharsets.UTF_8);
    }

    /// The key that has another chunk's digest in the place of this one's.
    byte[] withDigest(String otherDigest) {
        byte[] digits = otherDigest.getBytes(StandardCharsets.ISO_8859_1);
        byte[] other = Arrays.copyOf(key, key.length - (to - from) + digits.length);
        System.arraycopy(digits, 0, other, from, digits.length);
        System.arraycopy(key, to, other, from + digits.length, key.length - to);
        return other;
    }
}
