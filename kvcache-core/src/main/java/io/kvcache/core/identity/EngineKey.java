package io.kvcache.core.identity;

import java.security.MessageDigest;
import java.util.HexFormat;

/// The name that an engine gave to one of its blocks: 1 to 4,096 bytes that themselves name everything
/// before the block, as those of vLLM and SGLang do.
///
/// **Threads.** Immutable.
public final class EngineKey {

    private static final ValueRange BYTES = new ValueRange("engine key bytes", 1, 4096);

    private final byte[] bytes;

    private EngineKey(byte[] bytes) {
        this.bytes = bytes;
    }

    /// A key of these bytes, which are copied.
    ///
    /// @throws IllegalArgumentException when there are none or more than 4,096
    public static EngineKey of(byte[] bytes) {
        BYTES.check(bytes.length);
        return new EngineKey(bytes.clone());
    }

    /// Returns the store's key of the block: the first 16 bytes of `SHA-256(namespace digest ‖ key)`, as in a
    /// chain of engine keys.
    public BlockKey toBlockKey(Namespace namespace) {
        MessageDigest sha = Sha256.newDigest();
        sha.update(namespace.rawDigest());
        return BlockKey.ofDigest(sha.digest(bytes));
    }

    /// The last 8 bytes, big-endian; of a shorter key all of it.
    public long low64() {
        return low64(bytes);
    }

    static long low64(byte[] key) {
        return EngineValueKey.low64(key, key.length);
    }

    /// All hexadecimal digits, lower case.
    @Override
    public String toString() {
        return HexFormat.of().formatHex(bytes);
    }
}
