package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointAuthPolicy;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.FaultyProxy;
import io.kvcache.transport.shm.ShmDirectory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// A cache that may use several servers: which one it uses, and what becomes of it when that one fails.
@Timeout(300)
final class ServerListTest {

    private static final String DEAD = "127.0.0.1:1";

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
    private static TcpEndpoint serve(KvCache store, EndpointOptions options) throws IOException {
        return TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getByName("127.0.0.2"), 0), options);
    }

    private static TcpEndpoint serve(KvCache store) throws IOException {
        return serve(store, EndpointOptions.DEFAULTS);
    }

    private static void gone(TcpEndpoint endpoint) throws IOException {
        endpoint.close();
    }

    private static String address(TcpEndpoint endpoint) {
        return "127.0.0.2:" + endpoint.address().getPort();
    }

    @Test
    void givenTheFirstIsDead_whenConnected_thenTheNextIsUsed() throws IOException {
        try (TcpEndpoint second = serve(two);
                RemoteKvCache cache = RemoteKvCache.connect(DEAD, address(second))) {
            cache.register(TestBlocks.SPACE);
            assertThat(cache.server()).isEqualTo(address(second));
            assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 1, 3)))
                    .isEqualTo(3);
        }
    }

    @Test
    void givenTheFirstRefusesThisClient_whenConnected_thenTheNextIsUsed() throws IOException {
        EndpointOptions guarded =
                EndpointOptions.DEFAULTS.withAuth(EndpointAuthPolicy.secret("a secret of some length"));
        try (TcpEndpoint first = serve(one, guarded);
                TcpEndpoint second = serve(two);
                RemoteKvCache cache = RemoteKvCache.connect(address(first), address(second))) {
            assertThat(cache.server()).isEqualTo(address(second));
        }
    }

    @Test
    void givenNobodyAnywhere_whenConnected_thenItSaysOfEachWhy() throws IOException {
        EndpointOptions guarded =
                EndpointOptions.DEFAULTS.withAuth(EndpointAuthPolicy.secret("a secret of some length"));
        try (TcpEndpoint first = serve(one, guarded)) {
            assertThatThrownBy(() -> RemoteKvCache.connect(DEAD, address(first)))
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("cannot reach " + DEAD)
                    .hasMessageContaining(address(first) + " refuses: ");
        }
    }

    @Test
    void givenAServerTwice_whenConnected_thenRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.connect(DEAD, "host:1", DEAD))
                .withMessageContaining("allowed: each once");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.connect(DEAD, "host"))
                .withMessageContaining("allowed: host:port");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.connect("host:1,other:2"))
                .withMessageContaining("pass several servers as several addresses");
    }

    @Test
    void givenTheServerThatIsUsedGoes_whenUsedOn_thenTheNextServesAndEventsSayThatSomeWereLost() throws IOException {
        TcpEndpoint first = serve(one);
        try (TcpEndpoint second = serve(two);
                RemoteKvCache cache = RemoteKvCache.connect(address(first), address(second))) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 3);
            assertThat(one.match(chain)).isEqualTo(cache.match(chain));
            EventBatch before = cache.events().since(0, 100);
            assertThat(before.events()).hasSize(3);
            BlockTable held = cache.acquire(chain);
            first.close();
            TestBlocks.await("another server", () -> TestBlocks.put(cache, chain, 0));
            assertThat(cache.server()).isEqualTo(address(second));
            assertThat(TestBlocks.verify(held, chain))
                    .as("what had arrived stays")
                    .isEqualTo(3);
            held.close();
            assertThat(cache.match(chain)).as("the other has its own").isEqualTo(new Match(0, 1, 0));
            assertThat(two.match(chain).blocks()).isEqualTo(1);
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
        } finally {
            first.close();
        }
    }

    @Test
    @Tag("slow")
    void givenAServerThatDoesNotAnswerAnyMore_whenUsedOn_thenTheNextServesAndNothingIsHeldThere() throws Exception {
        try (TcpEndpoint first = TcpEndpoint.open(
                        one, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
                FaultyProxy proxy = new FaultyProxy(first.address().getPort());
                TcpEndpoint second = serve(two);
                RemoteKvCache cache = RemoteKvCache.builder(proxy.address(), address(second))
                        .requestTimeout(Duration.ofSeconds(2))
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 2);
            proxy.stall(true);
            TestBlocks.await("another server", () -> TestBlocks.put(cache, chain, 0));
            assertThat(cache.server()).isEqualTo(address(second));
            proxy.stall(false);
            TestBlocks.await("all is back", () -> one.stats().openTables() == 0);
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }

    @Test
    void givenAllGone_whenTheFirstComesBack_thenItIsFoundAgain() throws IOException {
        TcpEndpoint first = serve(one);
        TcpEndpoint second = serve(two);
        try (RemoteKvCache cache = RemoteKvCache.connect(address(first), address(second))) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 2);
            InetSocketAddress place = first.address();
            second.close();
            first.close();
            TestBlocks.await("a miss", () -> cache.match(chain).equals(Match.NOTHING));
            try (TcpEndpoint again = TcpEndpoint.open(one, place, EndpointOptions.DEFAULTS)) {
                TestBlocks.await("found again", () -> TestBlocks.verified(cache, chain) == 2);
                assertThat(cache.server()).isEqualTo(address(again));
            }
        } finally {
            first.close();
            second.close();
        }
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void givenServersByDifferentWays_whenTheOneInMemoryGoes_thenTheOtherServesOverTcp() throws IOException {
        try (ShmDirectory folder = ShmDirectory.make();
                TieredKvCache mapped = TieredKvCache.builder()
                        .hostBytes(32 << 20)
                        .prefaultInBackground(false)
                        .shareMemory(folder.path())
                        .build();
                TcpEndpoint first = serve(mapped);
                TcpEndpoint second = serve(two);
                RemoteKvCache cache = RemoteKvCache.connect("shm:" + address(first), address(second))) {
            cache.register(TestBlocks.SPACE);
            assertThat(cache.remoteStats().sharedMemory()).isTrue();
            gone(first);
            BlockChain chain = TestBlocks.chain(1, 1);
            TestBlocks.await("another server", () -> TestBlocks.put(cache, chain, 0));
            assertThat(cache.remoteStats().sharedMemory()).isFalse();
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(1);
        }
    }
}
