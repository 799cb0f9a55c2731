package io.kvcache.bench.jmh;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;
import java.lang.foreign.MemorySegment;

/// Blocks of 2 MiB: 16 tokens of a model with 32 layers and 8 K/V heads of 128, as Llama-3-8B.
final class BenchBlocks {

    static final int BLOCK_BYTES = 2 << 20;

    /// 512 MiB of them, sixteen times the largest cache of the machines we know.
    static final int RESIDENT_BLOCKS = 256;

    static final long RESIDENT_BYTES = (long) RESIDENT_BLOCKS * BLOCK_BYTES;

    /// 64 MiB at the other end, so that this end misses the cache as well.
    static final int SOURCE_BLOCKS = 32;

    static final Namespace NAMESPACE = Namespace.of("bench", BlockShape.kv(32, 8, 128, 16, Dtype.BF16));

    private static final int BLOCK_TOKENS = 16;

    private BenchBlocks() {}

    /// A sequence of one block, another one for each number.
    static BlockChain chain(int number) {
        int[] tokens = new int[BLOCK_TOKENS];
        tokens[0] = number;
        return BlockChain.of(NAMESPACE, tokens);
    }

    /// Memory for `count` blocks as the store has it, every page touched.
    static HostMemory memory(int count) {
        HostMemory memory =
                new MappedMemorySource(MemoryOptions.defaults()).reserve("blocks", (long) count * BLOCK_BYTES);
        memory.segment().fill((byte) 7);
        return memory;
    }

    static MemorySegment slice(HostMemory memory, int block) {
        return memory.segment().asSlice((long) block * BLOCK_BYTES, BLOCK_BYTES);
    }
}
