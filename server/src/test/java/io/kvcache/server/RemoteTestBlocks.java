package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.stream.IntStream;

/// Uses a server as another JVM would.
final class RemoteTestBlocks {

    static final Namespace SPACE = Namespace.of("m", BlockShape.kv(4, 1, 1024, 16, Dtype.BF16));

    private RemoteTestBlocks() {}

    /// A client that a slow machine does not hurry.
    static RemoteKvCacheBuilder clientBuilder(String server) {
        return RemoteKvCache.builder(server)
                .requestTimeout(Duration.ofSeconds(60))
                .lease(Duration.ofSeconds(60));
    }

    static BlockChain chain(Namespace namespace, int blocks) {
        return BlockChain.of(namespace, IntStream.range(0, 16 * blocks).toArray());
    }

    static void put(KvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                BlockContent.of(chain.key(index)).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
        }
    }

    static int verifiedBlocks(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            for (int index = 0; index < table.readyBlocks(); index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return table.readyBlocks();
        }
    }

    /// Blocks that a server loads within a time.
    static int storedBlocks(KvCache cache, BlockChain chain, Duration timeout) {
        try (BlockTable table = cache.acquire(chain, 0, timeout)) {
            return table.await(chain.length(), timeout);
        }
    }

    static void assertRefused(RemoteKvCacheBuilder client) {
        assertThatThrownBy(() -> client.connect().close())
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("the proof is wrong");
    }
}
