package io.kvcache.tiers.example;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;

/// The example of README.md, word for word between the markers; a test compiles and runs it.
final class EmbeddingExample {

    private EmbeddingExample() {}

    static int run(int[] prompt) {
        // README begin
        Namespace model = Namespace.of("llama-3-8b", BlockShape.kv(32, 8, 128, 16, Dtype.BF16));
        try (var cache = TieredKvCache.builder().hostBytes(1L << 30).build()) {
            cache.register(model);
            BlockChain chain = cache.chain(model, prompt);
            try (var table = cache.acquire(chain)) {
                int cached = table.readyBlocks(); // prefill starts at token cached * 16
                for (int i = cached; i < chain.length(); i++) {
                    try (var writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                        if (writer.outcome() == PutOutcome.RESERVED) {
                            computeBlock(prompt, i, writer); // your engine fills writer.segment() and seals
                        } else if (writer.outcome() != PutOutcome.PRESENT) {
                            break; // declined, or no room: a shorter prefix is stored
                        }
                    }
                }
            }
            return cache.match(chain).blocks();
        }
        // README end
    }

    private static void computeBlock(int[] prompt, int index, BlockWriter writer) {
        writer.segment().fill((byte) prompt[index]);
        writer.seal();
    }
}
