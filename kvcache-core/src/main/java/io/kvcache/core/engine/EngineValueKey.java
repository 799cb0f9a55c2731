package io.kvcache.core.engine;

import io.kvcache.core.hash.Sha256;
import io.kvcache.core.identity.Namespace;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Where an engine's hash stands in the key of a value.
///
/// A key of LMCache is text in fields between `@`, of which the digest of the chunk is the longest of
/// hexadecimal digits, 8 to 128, the last of equals; there may be a sign before it.
///
/// ```
/// vllm@model@4@0@1c7e…a5            model@4@0@1c7e…a5@bfloat16@tag%value        model@04000400@1c7e…a5
/// ```
///
/// LMCache's Redis connectors store one thing under two keys, with `metadata` and `kv_bytes` at the end.
public final class EngineValueKey {

    /// In place of the two ends of a digest, where a key has none.
    public static final long NO_DIGEST = -1;

    private static final byte[] METADATA_SUFFIX = "metadata".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] BYTES_SUFFIX = "kv_bytes".getBytes(StandardCharsets.US_ASCII);

    private static final String VLLM_TIER = "vllm-tier/";
    private static final String LMCACHE = "lmcache/";
    private static final String SGLANG = "sglang/";
    private static final int GROUP_BYTES = Integer.BYTES;

    private static final int MIN_FIELDS = 3;
    private static final int MIN_DIGEST = 8;

    /// 512 bits. Digests are remembered, so a client must not decide how much memory that takes.
    private static final int MAX_DIGEST = 128;

    private EngineValueKey() {}

    /// The engine's own hash in the key of a value, as the engine's KV events name the block. The beginning of the
    /// namespace's layout says how its keys are made: `vllm-tier/`, a hash and 4 bytes of the group; `lmcache/`, a
    /// hash at the end; `sglang/`, a hash in hexadecimal, of which SGLang takes the high bits; empty, a key
    /// of LMCache. Pages of SGLang in pools beside `pool=kv` count as none.
    ///
    /// @return the low 64 bits, or those that SGLang takes; 0 where none is known
    public static long hashIn(Namespace namespace, byte[] key) {
        String layout = namespace.layout();
        if (layout.isEmpty()) {
            return lmcacheHash(key);
        }
        if (layout.startsWith(VLLM_TIER)) {
            return Sha256.low64(key, key.length - GROUP_BYTES);
        }
        if (layout.startsWith(SGLANG)) {
            boolean beside = layout.contains(" pool=") && !layout.contains(" pool=kv ");
            return beside ? 0 : hex64(key, 0, Math.min(key.length, 2 * Long.BYTES));
        }
        return layout.startsWith(LMCACHE) ? Sha256.low64(key, key.length) : 0;
    }

    /// Returns whether the engine's events have its hashes as signed numbers.
    public static boolean isSigned(Namespace namespace) {
        return namespace.layout().startsWith(SGLANG);
    }

    /// Returns whether a key ends as one of two halves does.
    public static boolean hasSuffix(byte[] key) {
        return isMetadata(key) || endsWith(key, BYTES_SUFFIX);
    }

    /// Returns whether a key ends as that of the half with the metadata does.
    public static boolean isMetadata(byte[] key) {
        return endsWith(key, METADATA_SUFFIX);
    }

    /// Number of bytes before the suffix and its colon; the whole length when the key has no suffix.
    public static int baseLength(byte[] key) {
        if (!hasSuffix(key)) {
            return key.length;
        }
        int base = key.length - BYTES_SUFFIX.length;
        return key[base - 1] == ':' ? base - 1 : base;
    }

    /// The key of the other half.
    ///
    /// @param key one that [#hasSuffix]
    public static byte[] otherHalf(byte[] key) {
        byte[] suffix = isMetadata(key) ? BYTES_SUFFIX : METADATA_SUFFIX; // both have eight letters
        byte[] other = key.clone();
        System.arraycopy(suffix, 0, other, key.length - suffix.length, suffix.length);
        return other;
    }

    private static boolean endsWith(byte[] key, byte[] suffix) {
        int from = key.length - suffix.length;
        return from > 0 && Arrays.equals(key, from, key.length, suffix, 0, suffix.length);
    }

    /// Where the digest begins in the upper half, and where it ends in the lower one, or [#NO_DIGEST]: most keys that
    /// are looked at have none, and leave nothing on the heap.
    public static long findDigest(byte[] key) {
        int end = baseLength(key);
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

    /// The low 64 bits of the number that the digest is, of a negative one as well; 0 of a key without one.
    private static long lmcacheHash(byte[] key) {
        long place = findDigest(key);
        if (place == NO_DIGEST) {
            return 0;
        }
        int from = (int) (place >>> Integer.SIZE);
        int to = (int) place;
        long low = hex64(key, Math.max(from, to - 2 * Long.BYTES), to);
        return from > 0 && key[from - 1] == '-' ? -low : low;
    }

    /// Reads up to 16 hexadecimal digits; 0 when there is anything else among them.
    static long hex64(byte[] text, int from, int to) {
        long value = 0;
        for (int i = from; i < to; i++) {
            int digit = Character.digit(text[i], 16);
            if (digit < 0) {
                return 0;
            }
            value = value << 4 | digit;
        }
        return value;
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
}
