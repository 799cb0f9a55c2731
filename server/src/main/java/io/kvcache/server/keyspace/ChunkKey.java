package io.kvcache.server.keyspace;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// A key of LMCache: fields between `@`, one of which is the digest of a chunk of tokens and of all
/// before it.
///
/// ```
/// vllm@model@4@0@1c7e…a5            model@4@0@1c7e…a5@bfloat16@tag%value        model@04000400@1c7e…a5
/// ```
///
/// The digest is the longest field of hexadecimal digits, 8 to 128, the last of equals; there may
/// be a sign before it, and behind the key what makes it a half ([ObjectKey]). All but digest and half
/// is the **stem**: model, worker and the like.
///
/// @param key not to be changed
/// @param from where the digest begins
/// @param to where it ends
/// @param end where the key ends without what makes it a half
/// @param digest as it stands in the key
@SuppressWarnings("ArrayRecordComponent") // never compared
public record ChunkKey(byte[] key, int from, int to, int end, String digest) {

    private static final int MIN_FIELDS = 3;
    private static final int MIN_DIGEST = 8;

    /// 512 bits. Digests are remembered, so a client must not decide how much memory that takes.
    private static final int MAX_DIGEST = 128;

    private static final long NO_DIGEST = -1;

    /// The parts of a key, or null when it does not look like one of LMCache's.
    public static @Nullable ChunkKey of(byte[] key) {
        int end = ObjectKey.baseLength(key);
        long digest = findDigest(key, end);
        if (digest == NO_DIGEST) {
            return null;
        }
        int from = (int) (digest >>> Integer.SIZE);
        int to = (int) digest;
        return new ChunkKey(key, from, to, end, new String(key, from, to - from, StandardCharsets.ISO_8859_1));
    }

    /// Returns whether a key looks like one of LMCache's.
    static boolean isChunk(byte[] key) {
        return findDigest(key, ObjectKey.baseLength(key)) != NO_DIGEST;
    }

    /// Where the digest begins in the upper half, and where it ends in the lower one: most keys that are looked at have
    /// none, and leave nothing on the heap.
    private static long findDigest(byte[] key, int end) {
        int fields = 1;
        int from = -1;
        int to = -1;
        for (int start = 0; start <= end; ) {
            int stop = start;
            while (stop < end && key[stop] != '@') {
                stop++;
            }
            int digits = digitCount(key, start, stop);
            if (digits >= MIN_DIGEST && digits <= MAX_DIGEST && digits >= to - from) {
                from = stop - digits;
                to = stop;
            }
            fields += stop < end ? 1 : 0;
            start = stop + 1;
        }
        return fields < MIN_FIELDS || from < 0 ? NO_DIGEST : (long) from << Integer.SIZE | to;
    }

    /// How many digits a field has, or 0 when there is anything else in it but a sign.
    private static int digitCount(byte[] key, int from, int to) {
        int start = from < to && key[from] == '-' ? from + 1 : from;
        for (int i = start; i < to; i++) {
            if (Character.digit(key[i], 16) < 0) {
                return 0;
            }
        }
        return to - start;
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
