package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointOptions.HeapLimits;
import io.kvcache.transport.wire.MessageType;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A refusal says whether the chain is the reason: if it is, it is told again; if not, nothing is
/// asked twice.
@Timeout(180)
final class BusyCauseTest {

    private static final int TYPE = 4;
    private static final int BODY = 16;
    private static final int STATUS = 24;
    private static final int BUSY = 7;
    private static final int ACQUIRE = MessageType.ACQUIRE.code();

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .build();
    private final AtomicInteger busy = new AtomicInteger();

    @AfterEach
    void close() {
        store.close();
    }

    private static RemoteKvCache client(InProcessServer server) {
        RemoteKvCache cache = new RemoteKvCacheBuilder(server)
                .requestTimeout(Duration.ofSeconds(60))
                .connect();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    /// Counts refusals, and says of them what an older server says if that is wanted.
    private InProcessServer.MutatedFrame heard(byte[] frame, boolean older) {
        boolean refused = frame[STATUS] == BUSY && frame[TYPE] == ACQUIRE;
        if (refused) {
            busy.incrementAndGet();
        }
        if (!refused || !older) {
            return new InProcessServer.MutatedFrame(frame, false);
        }
        byte[] less = Arrays.copyOf(frame, frame.length - 1);
        int body = Byte.toUnsignedInt(less[BODY]) - 1;
        less[BODY] = (byte) body;
        return new InProcessServer.MutatedFrame(less, false);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAllLeasesThatThereMayBe_whenMoreIsAsked_thenItIsAskedTwiceOnlyIfTheServerDoesNotSayWhy(boolean older) {
        EndpointOptions one = EndpointOptions.DEFAULTS.withMaxHandles(1);
        try (Endpoint endpoint = new Endpoint(store, one, System::nanoTime)) {
            InProcessServer server = new InProcessServer(endpoint, (wire, frame) -> heard(frame, older));
            try (RemoteKvCache cache = client(server)) {
                BlockChain chain = TestBlocks.stored(cache, 1, 2);
                try (BlockTable held = cache.acquire(chain);
                        BlockTable more = cache.acquire(chain)) {
                    assertThat(held.readyBlocks()).isEqualTo(2);
                    assertThat(more.readyBlocks()).isZero();
                    assertThat(busy.get()).isEqualTo(older ? 2 : 1);
                }
            }
            assertThat(server.bugs()).isEmpty();
        }
    }

    @Test
    void givenAChainThatWasGivenUp_whenAskedAbout_thenItIsToldAgainAndFound() {
        HeapLimits little = new HeapLimits(200, 200 * 48, 300 * 48, 1, 1);
        try (Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS.withHeap(little), System::nanoTime)) {
            InProcessServer server = new InProcessServer(endpoint, (wire, frame) -> heard(frame, false));
            try (RemoteKvCache first = client(server);
                    RemoteKvCache second = client(server)) {
                for (int seed = 1; seed <= 4; seed++) {
                    assertThat(TestBlocks.put(first, TestBlocks.chain(seed, 100), 0))
                            .isTrue();
                }
                for (int round = 0; round < 3; round++) {
                    for (int seed = 1; seed <= 4; seed++) {
                        assertThat(TestBlocks.verified(first, TestBlocks.chain(seed, 100)))
                                .isEqualTo(1);
                        assertThat(TestBlocks.verified(second, TestBlocks.chain(seed, 100)))
                                .isEqualTo(1);
                    }
                }
                assertThat(busy.get()).as("chains were given up").isPositive();
                assertThat(first.remoteStats().failed() + second.remoteStats().failed())
                        .isZero();
            }
        }
    }
}
