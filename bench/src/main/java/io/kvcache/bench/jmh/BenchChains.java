package io.kvcache.bench.jmh;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/// Long sequences with nothing in common: chains of 8,192 blocks of 16 tokens, 131,072 tokens each; and such
/// with names, of any namespace.
public final class BenchChains {

    static final int BLOCKS = 8192;

    /// A block of 4 KiB, the smallest slot there is: a million of them need 4 GiB, of which nothing is
    /// written.
    static final Namespace NAMESPACE = Namespace.of("bench", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));

    private static final int BLOCK_TOKENS = 16;

    private BenchChains() {}

    /// A chain whose blocks an engine has named: `name/0` and so on.
    public static BlockChain named(Namespace namespace, String name, int blocks) {
        List<byte[]> keys = IntStream.range(0, blocks)
                .mapToObj(block -> (name + "/" + block).getBytes(StandardCharsets.US_ASCII))
                .toList();
        return BlockChain.ofEngineKeys(namespace, keys);
    }

    /// `count` chains; another seed gives others.
    static BlockChain[] of(long seed, int count) {
        return of(NAMESPACE, seed, count);
    }

    /// The same of another namespace with blocks of 16 tokens.
    static BlockChain[] of(Namespace namespace, long seed, int count) {
        return of(namespace, seed, count, BLOCKS);
    }

    /// `count` chains of a single block.
    static BlockChain[] oneBlockChains(long seed, int count) {
        return of(NAMESPACE, seed, count, 1);
    }

    private static BlockChain[] of(Namespace namespace, long seed, int count, int blocks) {
        SplittableRandom random = new SplittableRandom(seed);
        BlockChain[] chains = new BlockChain[count];
        Arrays.setAll(
                chains,
                i -> BlockChain.of(
                        namespace, random.ints((long) blocks * BLOCK_TOKENS).toArray()));
        return chains;
    }

    /// Receives the blocks of [#forEachBlockInterleaved].
    interface BlockVisitor {
        void take(BlockChain chain, int index);
    }

    /// Visits every block of every chain, a chain's blocks in order and the chains in random turns:
    /// records that follow one another in a chain then lie apart in memory, as they do in a store that
    /// has run for a while.
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

    /// Random numbers, a sequence of its own for each thread, the same in every run.
    @State(Scope.Thread)
    public static class RandomIndexes {

        private static final long GOLDEN = 0x9E3779B97F4A7C15L;

        private long state = GOLDEN;

        /// A number from 0 to `bound`, exclusive.
        ///
        /// @param after a result that this number shall wait for, so that the processor cannot begin with
        ///     the next operation before it has finished the last one; nothing else comes of it
        int next(int bound, long after) {
            state += GOLDEN + (after & 1);
            long mixed = (state ^ (state >>> 32)) * 0xD6E8FEB86659FD93L;
            mixed = (mixed ^ (mixed >>> 32)) * 0xD6E8FEB86659FD93L;
            return (int) Math.unsignedMultiplyHigh(mixed ^ (mixed >>> 32), bound);
        }
    }
}
