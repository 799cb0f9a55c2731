package io.kvcache.server.path;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// Puts a block into an embedded store and reads it back from host memory.
public final class EmbeddedPaths implements Supplier<Map<String, List<String>>> {

    private static final Namespace MODEL = Namespace.of("model", BlockShape.kv(2, 2, 16, 16, Dtype.BF16));
    private static final int WARM_UP = 3;

    @Override
    public Map<String, List<String>> get() {
        try (var cache = TieredKvCache.builder()
                .hostBytes(64L << 20)
                .policy(PolicyKind.LRU)
                .checkSegments(false)
                .build()) {
            cache.register(MODEL);
            for (int i = 0; i < WARM_UP; i++) {
                put(cache, chain(i));
                read(cache, chain(i));
            }
            BlockChain chain = chain(WARM_UP);
            String thread = Thread.currentThread().getName();
            PathRecorder.start(thread);
            put(cache, chain);
            List<String> put = PathRecorder.stop();
            PathRecorder.start(thread);
            read(cache, chain);
            return Map.of("embedded put", put, "embedded host hit", PathRecorder.stop());
        }
    }

    private static BlockChain chain(int seed) {
        BlockChain chain = BlockChain.of(
                MODEL, IntStream.range(0, 32).map(i -> seed * 1000 + i).toArray());
        chain.keyHi(0);
        return chain;
    }

    private static void put(KvCache cache, BlockChain chain) {
        for (int i = 0; i < chain.length(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    throw new IllegalStateException("put was " + writer.outcome());
                }
                writer.segment().fill((byte) i);
                writer.seal();
            }
        }
    }

    private static void read(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            long sum = 0;
            for (int i = 0; i < table.readyBlocks(); i++) {
                sum += table.segment(i).get(ValueLayout.JAVA_BYTE, 0);
            }
            if (sum != 1) {
                throw new IllegalStateException("blocks are not what was put");
            }
        }
    }
}
