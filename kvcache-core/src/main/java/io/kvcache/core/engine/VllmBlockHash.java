package io.kvcache.core.engine;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The block hash that vLLM calls `sha256_cbor`: `digest[i] = SHA-256(CBOR([digest[i-1], [tokens], extras]))`.
///
/// Only full blocks are hashed. The parent of block 0 is *NONE_HASH*, the digest of the seed as a CBOR text:
/// the value of `PYTHONHASHSEED` where vLLM runs with one, else a fixed text (since August 2026; random
/// before). The other hash algorithms of vLLM pickle their input or seed themselves at random, and cannot be
/// repeated outside its process.
///
/// **Source.** vLLM `v1/core/kv_cache_utils.py`; the encoding of extras changed in autumn 2026 (vllm#44701), so
/// both are here and the caller has to know the engine's version as soon as adapters, items or salts are in
/// use.
///
/// Immutable; any thread.
public final class VllmBlockHash {

    /// The seed of a vLLM that runs without `PYTHONHASHSEED`.
    public static final String DEFAULT_SEED = "vllm-none-hash";

    /// How extras are distinguished.
    public enum ExtraEncoding {
        /// As `["lora", name, path]`, `["mm", identifier, offset]`, `["cache_salt", salt]`, `["prompt_embeds",
        /// digest]`.
        TAGGED,
        /// As `name`, `[identifier, offset]`, `salt`, `digest`: before autumn 2026, and in events still.
        UNTAGGED
    }

    private final byte[] noneHash;
    private final ExtraEncoding encoding;

    private VllmBlockHash(String seed, ExtraEncoding encoding) {
        noneHash = new CborWriter().text("seed", seed).sha256();
        this.encoding = encoding;
    }

    /// The hash of an engine that runs without `PYTHONHASHSEED`.
    public static VllmBlockHash withDefaultSeed(ExtraEncoding encoding) {
        return new VllmBlockHash(DEFAULT_SEED, encoding);
    }

    /// The hash of an engine that runs with `PYTHONHASHSEED`.
    ///
    /// @param pythonHashSeed the value of the variable as it is written there
    public static VllmBlockHash withSeed(String pythonHashSeed, ExtraEncoding encoding) {
        return new VllmBlockHash(pythonHashSeed, encoding);
    }

    /// The parent of every block 0. A copy.
    public byte[] noneHash() {
        return noneHash.clone();
    }

    /// The digest of one block.
    ///
    /// @param parent the digest of the block before, or null for block 0
    /// @param tokens the tokens of the block
    /// @param extras what concerns this block, see [VllmExtraKeys#forBlock]
    public byte[] hash(byte @Nullable [] parent, int[] tokens, VllmExtraKeys extras) {
        return hash(new CborWriter(), parent == null ? noneHash : parent, tokens, extras);
    }

    /// The digests of a request's full blocks, in order; what
    /// [io.kvcache.core.identity.BlockChain#ofEngineKeys] takes.
    ///
    /// @param extras those of the whole request
    public List<byte[]> chain(int[] tokens, int blockTokens, VllmExtraKeys extras) {
        int blocks = PageCount.fullPages(tokens.length, blockTokens);
        List<byte[]> digests = new ArrayList<>(blocks);
        CborWriter cbor = new CborWriter();
        byte[] parent = noneHash;
        for (int block = 0; block < blocks; block++) {
            int from = block * blockTokens;
            int[] own = Arrays.copyOfRange(tokens, from, from + blockTokens);
            parent = hash(cbor, parent, own, extras.forBlock(block, blockTokens));
            digests.add(parent);
        }
        return digests;
    }

    /// The integer that stands for a digest in events: its last 8 bytes, big-endian, to be read as unsigned.
    public static long eventHash(byte[] digest) {
        return ByteBuffer.wrap(digest).getLong(digest.length - Long.BYTES);
    }

    /// The key under which vLLM stores a block: the digest and the index of the KV-cache group, 4 bytes
    /// big-endian.
    public static byte[] storageKey(byte[] digest, int group) {
        return ByteBuffer.allocate(digest.length + Integer.BYTES)
                .put(digest)
                .putInt(group)
                .array();
    }

    private byte[] hash(CborWriter cbor, byte[] parent, int[] tokens, VllmExtraKeys extras) {
        cbor.array(3).bytes(parent).array(tokens.length);
        for (int token : tokens) {
            cbor.integer(token);
        }
        extras.write(cbor, encoding);
        return cbor.sha256();
    }
}
