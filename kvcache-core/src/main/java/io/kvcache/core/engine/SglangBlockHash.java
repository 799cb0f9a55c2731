package io.kvcache.core.engine;

import io.kvcache.core.hash.Sha256;
import io.kvcache.core.hash.Utf8;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The page hash of SGLang's HiCache: `digest[i] = SHA-256(digest[i-1] ‖ tokens[i] as uint32 little-endian)`.
///
/// The first page has no parent, so nothing stands before its tokens. With EAGLE speculation the unit is not
/// the token but the bigram `(token[i], token[i + 1])`, of which both members are hashed; `n` tokens make `n -
/// 1` bigrams.
///
/// The storage keys know no salt, adapter or dtype; events of salted requests are seeded by [#saltSeed].
///
/// **Source.** SGLang `srt/mem_cache/utils.py`, `get_hash_str`. Immutable; any thread.
public final class SglangBlockHash {

    private static final byte[] SALT_TAG = "sglang-cache-salt-v1\0".getBytes(StandardCharsets.US_ASCII);

    private final boolean bigrams;

    private SglangBlockHash(boolean bigrams) {
        this.bigrams = bigrams;
    }

    /// The hash of pages of tokens.
    public static SglangBlockHash ofTokens() {
        return new SglangBlockHash(false);
    }

    /// The hash of pages of bigrams, as EAGLE speculation uses it.
    public static SglangBlockHash ofBigrams() {
        return new SglangBlockHash(true);
    }

    /// Returns the seed that events show as the parent of the first page of a salted request.
    public static byte[] saltSeed(String salt) {
        MessageDigest sha = Sha256.newDigest();
        sha.update(SALT_TAG);
        return sha.digest(Utf8.encode("cache salt", salt));
    }

    /// The digest of one page.
    ///
    /// @param parent the digest of the page before, the salt's seed, or null
    /// @param tokens the tokens of the page; of a page of bigrams also the one after it
    public byte[] hash(byte @Nullable [] parent, int[] tokens) {
        return hash(Sha256.newDigest(), parent, tokens);
    }

    /// The digests of the full pages, in order; what [io.kvcache.core.identity.BlockChain#ofEngineKeys] takes.
    ///
    /// @param pageTokens tokens, or bigrams, in a page
    /// @param seed the salt's seed, or null for storage keys
    public List<byte[]> chain(int[] tokens, int pageTokens, byte @Nullable [] seed) {
        int pages = PageCount.fullPages(units(tokens), pageTokens);
        List<byte[]> digests = new ArrayList<>(pages);
        MessageDigest sha = Sha256.newDigest();
        byte[] parent = seed;
        for (int page = 0; page < pages; page++) {
            int from = page * pageTokens;
            int to = from + pageTokens + (bigrams ? 1 : 0);
            parent = hash(sha, parent, Arrays.copyOfRange(tokens, from, to));
            digests.add(parent);
        }
        return digests;
    }

    /// The key under which SGLang stores a page: the digest in lower-case hexadecimal.
    public static String key(byte[] digest) {
        return HexFormat.of().formatHex(digest);
    }

    /// The integer that stands for a digest in events: its first 8 bytes, big-endian, signed.
    public static long eventHash(byte[] digest) {
        return ByteBuffer.wrap(digest).getLong(0);
    }

    private int units(int[] tokens) {
        return bigrams ? Math.max(0, tokens.length - 1) : tokens.length;
    }

    private byte[] hash(MessageDigest sha, byte @Nullable [] parent, int[] tokens) {
        int units = units(tokens);
        ByteBuffer input = ByteBuffer.allocate(units * (bigrams ? 2 : 1) * Integer.BYTES);
        input.order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < units; i++) {
            input.putInt(tokens[i]);
            if (bigrams) {
                input.putInt(tokens[i + 1]);
            }
        }
        if (parent != null) {
            sha.update(parent);
        }
        return sha.digest(input.array());
    }
}
