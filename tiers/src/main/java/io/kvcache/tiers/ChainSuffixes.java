package io.kvcache.tiers;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import java.util.List;
import java.util.stream.IntStream;

/// The keys of the last blocks of chains: all that is kept of a chain that is spoken of later.
final class ChainSuffixes {

    /// Kept for one purpose of each group of namespaces, so that no tenant takes another's, as [#charge] counts
    /// them: 2 to 4 MiB.
    static final int MAX_BLOCKS = 1 << 16;

    /// What is kept beside the keys of one end takes about as much as eight keys.
    private static final int MIN_CHARGE = 8;

    private ChainSuffixes() {}

    /// Blocks that an end of a chain counts as where they are limited, so that many short ones take no
    /// more of the heap.
    ///
    /// @param blocks that it has
    static int charge(int blocks) {
        return Math.max(MIN_CHARGE, blocks);
    }

    /// A chain of the keys from one block on, with no memory shared with the one they are of.
    static BlockChain of(BlockChain chain, int from) {
        List<BlockKey> keys =
                IntStream.range(from, chain.length()).mapToObj(chain::key).toList();
        return BlockChain.ofKeys(chain.namespace(), keys);
    }
}
