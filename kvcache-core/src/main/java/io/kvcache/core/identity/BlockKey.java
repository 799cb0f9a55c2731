package io.kvcache.core.identity;

import io.kvcache.core.identity.Namespace.ObjectKeyHasher;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.List;

/// The name of a block or an object: the first 16 bytes of its SHA-256 digest.
///
/// For a block of tokens the digest is `digest[i] = SHA-256(digest[i-1] ‖ tokens[i] as int32 little-endian)`,
/// starting at `digest[-1] = namespace digest`; all 32 bytes are chained (see [BlockChain]). For an object it
/// is `SHA-256(domain tag ‖ namespace digest ‖ key)`.
///
/// **Collisions.** Among `n` keys two are equal by chance with a probability below `n² / 2^129`: for 2^40
/// blocks, a store of two exbibytes at 2 MiB a block, that is 2^-49. Making two blocks of one name on purpose
/// takes about 2^64 digests, making one with a given name about 2^128.
///
/// @param hi bytes 0 to 7 of the digest, big-endian
/// @param lo bytes 8 to 15 of the digest, big-endian
public record BlockKey(long hi, long lo) {

    /// Bytes of a key.
    public static final int BYTES = 16;

    private static final VarHandle LONG_BE = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final ValueRange DIGEST_BYTES = new ValueRange("digest bytes", BYTES, 64);
    private static final ValueRange OBJECT_KEY_BYTES = new ValueRange("object key bytes", 1, 4096);

    /// The key of a digest.
    ///
    /// @param digest 16 to 64 bytes, of which the first 16 count
    public static BlockKey ofDigest(byte[] digest) {
        DIGEST_BYTES.check(digest.length);
        return new BlockKey(longAt(digest, 0), longAt(digest, Long.BYTES));
    }

    /// The key of an opaque object.
    ///
    /// @param key 1 to 4,096 bytes
    public static BlockKey ofObject(Namespace namespace, byte[] key) {
        OBJECT_KEY_BYTES.check(key.length);
        return ObjectKeyHasher.forCurrentThread().hash(namespace, key);
    }

    /// The keys of objects that [#ofObject] will be asked for next, on this thread and in this order: it need not
    /// compute them again then.
    public static BlockKey[] ofObjectsAhead(Namespace namespace, List<byte[]> keys) {
        keys.forEach(key -> OBJECT_KEY_BYTES.check(key.length));
        return ObjectKeyHasher.forCurrentThread().hashAhead(namespace, keys);
    }

    static long longAt(byte[] bytes, int offset) {
        return (long) LONG_BE.get(bytes, offset);
    }

    /// All 32 hexadecimal digits, lower case.
    @Override
    public String toString() {
        HexFormat hex = HexFormat.of();
        return hex.toHexDigits(hi) + hex.toHexDigits(lo);
    }
}
