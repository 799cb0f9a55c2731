package io.kvcache.tiers.example;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import java.nio.file.Path;
import java.time.Duration;

/// The example of README.md, word for word between the markers; a test compiles and runs it.
final class EmbeddingExample {

    /// Blocks that had to be computed.
    private int computed;

    int run(int[] prompt, Path directory, long diskBytes) {
        // README begin
        Namespace model = Namespace.of("llama-3-8b", BlockShape.kv(32, 8, 128, 16, Dtype.BF16));
        Duration second = Duration.ofSeconds(1); // for what is on disk
        try (var cache = TieredKvCache.builder()
                .hostBytes(1L << 30)
                .disk(directory, diskBytes)
                .admission(AdmissionKind.ALWAYS) // by default what is used a second time
                .build()) {
            cache.register(model);
            BlockChain chain = cache.chain(model, prompt);
            try (var table = cache.acquire(chain, 0, second)) {
                int cached = table.await(table.endBlock(), second); // prefill starts at token cached * 16
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
        } // closing writes what the disk does not have yet
        // README end
    }

    int computed() {
        return computed;
    }

    private void computeBlock(int[] prompt, int index, BlockWriter writer) {
        computed++;
        writer.segment().fill((byte) prompt[index]);
        writer.seal();
    }
}
