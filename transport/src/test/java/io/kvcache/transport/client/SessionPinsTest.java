package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.Hint;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Pins that clients asked for by hints, and what becomes of them when clients go.
@Timeout(300)
final class SessionPinsTest {

    /// Blocks of 1 MiB that fill the store.
    private static final int FIT = 32;

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes((long) FIT << 20)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final TcpEndpoint endpoint = LoopbackServers.serve(store);

    private RemoteKvCache connect() {
        return connect(endpoint);
    }

    private static RemoteKvCache connect(TcpEndpoint endpoint) {
        return LoopbackServers.connect(endpoint, TestBlocks.SPACE);
    }

    @AfterEach
    void close() throws IOException {
        endpoint.close();
        store.validate();
        store.close();
    }

    private void fillOver(int seed) {
        for (int i = 0; i < 2 * FIT; i++) {
            TestBlocks.stored(store, seed + i, 1);
        }
    }

    private void goes(BlockChain chain) {
        TestBlocks.await("the end of the session and its pin", () -> {
            fillOver(300);
            return store.match(chain).blocks() == 0;
        });
    }

    @Test
    void givenPinsOfTwoClients_whenOneGoes_thenThatOfBothStaysUntilTheOtherGoes() {
        BlockChain both = chain(1);
        BlockChain one = chain(2);
        try (RemoteKvCache staying = connect()) {
            try (RemoteKvCache going = connect()) {
                assertThat(pin(going, one)).isTrue();
                assertThat(pin(going, both)).isTrue();
                assertThat(pin(staying, both)).isTrue();
                fillOver(100);
                assertThat(store.match(one).blocks()).isEqualTo(2);
            }
            goes(one);
            assertThat(store.match(both).blocks()).isEqualTo(2);
        }
        goes(both);
    }

    @Test
    void givenPinsOfClientsOfTwoEndpoints_whenOneGoes_thenThatOfBothStays() throws Exception {
        BlockChain both = chain(1);
        BlockChain one = chain(2);
        try (TcpEndpoint second = LoopbackServers.serve(store);
                RemoteKvCache staying = connect()) {
            try (RemoteKvCache going = connect(second)) {
                assertThat(pin(staying, both)).isTrue();
                assertThat(pin(going, one)).isTrue();
                assertThat(pin(going, both)).isTrue();
            }
            goes(one);
            assertThat(store.match(both).blocks()).isEqualTo(2);
        }
    }

    @Test
    void givenAClientsPin_whenAnotherEndsIt_thenItStays() {
        BlockChain chain = chain(1);
        try (RemoteKvCache owner = connect();
                RemoteKvCache other = connect()) {
            assertThat(pin(owner, chain)).isTrue();
            assertThat(other.hint(new Hint.Pin(chain, Duration.ZERO))).isTrue();
            fillOver(100);
            assertThat(store.match(chain).blocks()).isEqualTo(2);
            assertThat(owner.hint(new Hint.Pin(chain, Duration.ZERO))).isTrue();
            fillOver(300);
            assertThat(store.match(chain).blocks()).isZero();
        }
    }

    private BlockChain chain(int seed) {
        store.register(TestBlocks.SPACE);
        return TestBlocks.stored(store, seed, 2);
    }

    private static boolean pin(RemoteKvCache client, BlockChain chain) {
        return client.hint(new Hint.Pin(chain, Duration.ofNanos(Long.MAX_VALUE)));
    }
}
