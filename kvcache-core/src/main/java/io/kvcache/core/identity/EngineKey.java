package io.kvcache.core.identity;

import java.security.MessageDigest;
import java.util.HexFormat;

/// The name that an engine gave to one of its blocks: 1 to 4,096 bytes that themselves name everything
/// before the block, as those of vLLM and SGLang do.
///
/// **Threads.** Immutable.
public final class EngineKey {

    private static final ValueRange BYTES = new ValueRange("engine key bytes", 1, 4096);

    private static final String VLLM_TIER = "vllm-tier/";
    private static final String LMCACHE = "lmcache/";
    private static final String SGLANG = "sglang/";
    private static final int GROUP_BYTES = Integer.BYTES;

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
        return low64(key, key.length);
    }

    private static long low64(byte[] key, int end) {
        long low = 0;
        for (int i = Math.max(0, end - Long.BYTES); i < end; i++) {
            low = (low << Byte.SIZE) | (key[i] & 0xFF);
        }
        return low;
    }

    /// The engine's own hash in the key of a value, as the engine's KV events name the block. The beginning of the
    /// namespace's layout tells how its keys are made: `vllm-tier/`, a hash and 4 bytes of the group; `lmcache/`, a
    /// hash at the end; `sglang/`, a hash in hexadecimal, of which SGLang takes the high bits; empty, [LmcacheKey].
    /// What SGLang keeps in pools beside its `pool=kv` is no block.
    ///
    /// @return the low 64 bits, or those that SGLang takes; 0 where none is known
    public static long hashIn(Namespace namespace, byte[] key) {
        String layout = namespace.layout();
        if (layout.isEmpty()) {
            return LmcacheKey.low64(key);
        }
        if (layout.startsWith(VLLM_TIER)) {
            return low64(key, key.length - GROUP_BYTES);
        }
        if (layout.startsWith(SGLANG)) {
            boolean beside = layout.contains(" pool=") && !layout.contains(" pool=kv ");
            return beside ? 0 : LmcacheKey.hex64(key, 0, Math.min(key.length, 2 * Long.BYTES));
        }
        return layout.startsWith(LMCACHE) ? low64(key, key.length) : 0;
    }

    /// Returns whether the engine's events have its hashes as signed numbers.
    public static boolean isSigned(Namespace namespace) {
        return namespace.layout().startsWith(SGLANG);
    }

    /// All hexadecimal digits, lower case.
    @Override
    public String toString() {
        return HexFormat.of().formatHex(bytes);
    }
}
