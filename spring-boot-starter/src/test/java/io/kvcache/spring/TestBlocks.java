package io.kvcache.spring;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/// Four blocks of a prompt.
public final class TestBlocks {

    private static final Namespace SPACE = Namespace.of("model", BlockShape.kv(1, 1, 8, 16, Dtype.BF16));
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, 64).toArray());

    private TestBlocks() {}

    /// Puts the blocks and returns how many the cache took.
    public static int put(KvCache cache) {
        cache.register(SPACE);
        byte[] block = new byte[(int) SPACE.blockBytes()];
        Arrays.fill(block, (byte) 7);
        List<MemorySegment> blocks = IntStream.range(0, CHAIN.length())
                .mapToObj(_ -> MemorySegment.ofArray(block))
                .toList();
        return cache.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).accepted();
    }

    /// Returns how many of the blocks are there with their content.
    public static int found(KvCache cache) {
        cache.register(SPACE);
        try (BlockTable table = cache.acquire(CHAIN)) {
            return (int) IntStream.range(0, table.readyBlocks())
                    .filter(i -> table.segment(i).get(ValueLayout.JAVA_BYTE, 0) == 7)
                    .count();
        }
    }
}
