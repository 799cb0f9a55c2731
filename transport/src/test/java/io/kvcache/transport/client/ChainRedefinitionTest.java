package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointOptions.HeapLimits;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Clients of a server that has room for less chains than they speak of: what it gives up they tell
/// again.
@Timeout(180)
final class ChainRedefinitionTest {

    private static final long BLOCK_BYTES = 48;
    private static final HeapLimits ROOM = new HeapLimits(200, 200 * BLOCK_BYTES, 300 * BLOCK_BYTES, 1, 1);
    private static final int CHAINS = 5;

    private static RemoteKvCache client(InProcessServer server) {
        RemoteKvCache cache = new RemoteKvCacheBuilder(server)
                .requestTimeout(Duration.ofSeconds(60))
                .connect();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    @Test
    void givenMoreChainsThanThereIsRoomFor_whenClientsUseThem_thenNothingIsRefused() {
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .build();
                Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS.withHeap(ROOM), System::nanoTime)) {
            InProcessServer server =
                    new InProcessServer(endpoint, (wire, frame) -> new InProcessServer.MutatedFrame(frame, false));
            try (RemoteKvCache first = client(server);
                    RemoteKvCache second = client(server)) {
                for (int seed = 1; seed <= CHAINS; seed++) {
                    assertThat(TestBlocks.put(seed % 2 == 0 ? first : second, TestBlocks.chain(seed, 100), 0))
                            .isTrue();
                }
                for (int round = 0; round < 3; round++) {
                    for (int seed = 1; seed <= CHAINS; seed++) {
                        BlockChain chain = TestBlocks.chain(seed, 100 + round); // grows, too
                        for (RemoteKvCache cache : new RemoteKvCache[] {first, second}) {
                            assertThat(cache.match(chain).blocks()).isEqualTo(1);
                            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(1);
                        }
                    }
                }
                assertThat(first.remoteStats().failed()).isZero();
                assertThat(second.remoteStats().failed()).isZero();
            }
            assertThat(server.bugs()).isEmpty();
        }
    }
}
