package io.kvcache.bench.jmh;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.util.Arrays;
import java.util.SplittableRandom;

/// Long sequences with nothing in common: chains of 8,192 blocks of 16 tokens, 131,072 tokens each.
final class BenchChains {

    static final int BLOCKS = 8192;

    /// A block of 4 KiB, the smallest slot there is: a million of them need 4 GiB, of which nothing is written.
    static final Namespace NAMESPACE = Namespace.of("bench", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));

    private static final int BLOCK_TOKENS = 16;

    private BenchChains() {}

    /// `count` chains; another seed gives others.
    static BlockChain[] of(long seed, int count) {
        return of(seed, count, BLOCKS);
    }

    /// `count` chains of a single block.
    static BlockChain[] oneBlockChains(long seed, int count) {
        return of(seed, count, 1);
    }

    private static BlockChain[] of(long seed, int count, int blocks) {
        SplittableRandom random = new SplittableRandom(seed);
        BlockChain[] chains = new BlockChain[count];
        Arrays.setAll(
                chains,
                i -> BlockChain.of(
                        NAMESPACE, random.ints((long) blocks * BLOCK_TOKENS).toArray()));
        return chains;
    }

    /// What [#forEachBlockInterleaved] hands out.
    interface BlockVisitor {
        void take(BlockChain chain, int index);
    }

    /// Visits every block of every chain, a chain's blocks in order and the chains in random turns: records that
    /// follow one another in a chain then lie apart in memory, as they do in a store that has run for a while.
    static void forEachBlockInterleaved(BlockChain[] chains, BlockVisitor blockVisitor) {
        SplittableRandom random = new SplittableRandom(7);
        BlockChain[] open = chains.clone();
        int[] next = new int[open.length];
        for (int left = open.length; left > 0; ) {
            int at = random.nextInt(left);
            blockVisitor.take(open[at], next[at]++);
            if (next[at] == open[at].length()) {
                left--;
                open[at] = open[left];
                next[at] = next[left];
            }
        }
    }
}
