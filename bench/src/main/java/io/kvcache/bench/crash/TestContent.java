package io.kvcache.bench.crash;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.stream.IntStream;

/// What the chains and objects of a seed are called, and their bytes.
record TestContent(long seed) {

    /// Blocks of 16 KiB.
    static final Namespace BLOCKS = Namespace.of("crash", BlockShape.kv(1, 8, 32, 16, Dtype.BF16));

    static final Namespace OBJECTS = Namespace.objects("crash-objects", "crash");

    private static final int BLOCK_TOKENS = 16;

    /// All chains of a seed have their first block in common, as prompts have.
    BlockChain chain(int target, int blocks) {
        int[] tokens = IntStream.range(0, blocks * BLOCK_TOKENS)
                .map(at -> at < BLOCK_TOKENS ? Long.hashCode(seed) : 31 * target + at)
                .toArray();
        return BlockChain.of(BLOCKS, tokens);
    }

    static void fill(BlockChain chain, int index, MemorySegment slot) {
        BlockContent.of(chain.keyHi(index), chain.keyLo(index)).fill(slot);
    }

    static boolean matches(BlockChain chain, int index, MemorySegment slot) {
        return BlockContent.of(chain.keyHi(index), chain.keyLo(index)).mismatch(slot) < 0;
    }

    byte[] objectKey(int target) {
        return (seed + "/" + target).getBytes(StandardCharsets.US_ASCII);
    }

    /// The bytes that a step gives an object.
    BlockContent object(CrashStep put) {
        return BlockContent.of(seed, put.target()).withVersion(put.number());
    }
}
