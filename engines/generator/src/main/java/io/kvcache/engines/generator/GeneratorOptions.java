package io.kvcache.engines.generator;

import java.time.Duration;

/// How a generator uses its store.
///
/// @param blockTokens tokens in a block, 1 to 65,536; processes that share blocks take the same
/// @param tenant whose blocks these are; may be empty
/// @param salt keeps users of a tenant apart; may be empty
/// @param loadTimeout how long a prompt's blocks may take to arrive from slower tiers, a server or the sequence
///     before that is being stored, before the rest is computed
/// @param maxQueuedStores finished sequences whose blocks wait to be stored, 1 to 1,024; a further one is
///     not stored
/// @param verifiedShare of the hits that are computed all the same and compared, 0 to 1
/// @param seed decides which hits those are
public record GeneratorOptions(
        int blockTokens,
        String tenant,
        String salt,
        Duration loadTimeout,
        int maxQueuedStores,
        double verifiedShare,
        long seed) {

    private static final int MAX_BLOCK_TOKENS = 65_536;
    private static final int MAX_WAITING = 1024;

    /// Blocks of 64 tokens without a tenant, which may take a second to arrive; nothing is
    /// verified.
    public static final GeneratorOptions DEFAULTS =
            new GeneratorOptions(64, "", "", Duration.ofSeconds(1), 2, 0, 0x6b76_6361_6368_6531L);

    public GeneratorOptions {
        if (blockTokens < 1 || blockTokens > MAX_BLOCK_TOKENS) {
            throw new IllegalArgumentException("blockTokens is " + blockTokens + "; allowed: 1 to " + MAX_BLOCK_TOKENS);
        }
        if (loadTimeout.isNegative()) {
            throw new IllegalArgumentException("arrival is " + loadTimeout + "; it takes zero and more");
        }
        if (maxQueuedStores < 1 || maxQueuedStores > MAX_WAITING) {
            throw new IllegalArgumentException(
                    "maxQueuedStores is " + maxQueuedStores + "; allowed: 1 to " + MAX_WAITING);
        }
        if (!(verifiedShare >= 0 && verifiedShare <= 1)) {
            throw new IllegalArgumentException("verifiedShare is " + verifiedShare + "; allowed: 0 to 1");
        }
    }

    /// Takes blocks of another length.
    public GeneratorOptions withBlockTokens(int tokens) {
        return new GeneratorOptions(tokens, tenant, salt, loadTimeout, maxQueuedStores, verifiedShare, seed);
    }

    /// Keeps blocks for a tenant, and for those of its users that know the salt.
    public GeneratorOptions withTenant(String name, String secret) {
        return new GeneratorOptions(blockTokens, name, secret, loadTimeout, maxQueuedStores, verifiedShare, seed);
    }

    /// Waits longer or shorter for blocks from elsewhere.
    public GeneratorOptions withLoadTimeout(Duration timeout) {
        return new GeneratorOptions(blockTokens, tenant, salt, timeout, maxQueuedStores, verifiedShare, seed);
    }

    /// Verifies a share of the hits.
    public GeneratorOptions withVerifiedShare(double share) {
        return new GeneratorOptions(blockTokens, tenant, salt, loadTimeout, maxQueuedStores, share, seed);
    }
}
