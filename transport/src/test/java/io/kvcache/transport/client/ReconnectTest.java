package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A server that ends, and another one that starts at its address.
@Timeout(300)
final class ReconnectTest {

    private final TieredKvCache one = store();
    private final TieredKvCache two = store();

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .closeWait(Duration.ofSeconds(10))
                .build();
    }

    @AfterEach
    void close() {
        one.close();
        two.close();
    }

    /// Not where clients come from: one that connects again could get the very port that it looks for.
    private static TcpEndpoint serve(KvCache store, int port) throws IOException {
        return TcpEndpoint.open(
                store, new InetSocketAddress(InetAddress.getByName("127.0.0.2"), port), EndpointOptions.DEFAULTS);
    }

    @Test
    void givenAnotherServerAtTheAddress_whenUsedOn_thenItServesAndEventsReportTheGap() throws IOException {
        TcpEndpoint first = serve(one, 0);
        int port = first.address().getPort();
        try (RemoteKvCache cache = RemoteKvCache.connect("127.0.0.2:" + port)) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 3);
            EventBatch before = cache.events().since(0, 100);
            assertThat(before.events()).hasSize(3);
            BlockTable held = cache.acquire(chain);
            first.close();
            TestBlocks.await("a miss", () -> cache.match(chain).equals(Match.NOTHING));
            assertThat(TestBlocks.verify(held, chain)).as("what had arrived").isEqualTo(3);
            held.close();
            try (TcpEndpoint second = serve(two, port)) {
                TestBlocks.await("the new server", () -> TestBlocks.put(cache, chain, 0));
                assertThat(second.stats().sessions()).isEqualTo(1);
                assertThat(cache.match(chain)).as("it has its own").isEqualTo(new Match(0, 1, 0));
                EventBatch after = cache.events().since(before.nextSequence(), 100);
                assertThat(after.hasGap()).isTrue();
                assertThat(after.events()).hasSize(1);
                assertThat(after.events().getFirst().sequence()).isEqualTo(after.nextSequence() - 1);
                assertThat(cache.events().snapshot().nextSequence()).isEqualTo(after.nextSequence());
                assertThat(cache.events().nextSequence()).isEqualTo(after.nextSequence());
                assertThat(TestBlocks.put(cache, chain, 1)).isTrue();
                EventBatch next = cache.events().since(after.nextSequence(), 100);
                assertThat(next.hasGap()).isFalse();
                assertThat(next.events().stream().map(CacheEvent::keyHi)).containsExactly(chain.keyHi(1));
            }
        } finally {
            first.close();
        }
    }

    @Test
    void givenSeveralAddresses_whenConnected_thenTheErrorNamesTheClientOfACluster() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.connect("host:1,other:2"))
                .withMessageContaining("address = \"host:1,other:2\"; allowed: host:port")
                .withMessageContaining("for several servers ClusteredKvCache.connect");
    }
}
