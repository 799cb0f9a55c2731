package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.HexFrames.assertAnswers;
import static io.kvcache.transport.endpoint.HexFrames.assertHears;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.wire.ProtocolException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What goes over the wire about a session and its store, and when blocks come late, byte by byte in both
/// directions, written out by hand.
final class SessionFramesTest {

    /// Blocks of 32 bytes.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final CompletableFuture<Integer> arrival = new CompletableFuture<>();
    private final Endpoint endpoint = new Endpoint(growing(), EndpointOptions.DEFAULTS, System::nanoTime);

    @AfterEach
    void nothingIsLeft() {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        store.validate();
        store.close();
    }

    /// The store, but that what is acquired with a time-out comes when the test wants it.
    private KvCache growing() {
        return new ForwardingKvCache(store) {
            @Override
            public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
                BlockTable table = super.acquire(chain, from, timeout);
                return timeout.isZero() ? table : new GrowingTable(table, arrival);
            }
        };
    }

    /// Its first block is ready, and the others when they arrive.
    private static final class GrowingTable extends ForwardingBlockTable {

        private final CompletableFuture<Integer> arrival;

        GrowingTable(BlockTable table, CompletableFuture<Integer> arrival) {
            super(table);
            this.arrival = arrival;
        }

        @Override
        public int readyEnd() {
            return arrival.isDone() ? delegate().readyEnd() : firstBlock() + 1;
        }

        @Override
        public int await(int blocks, Duration timeout) {
            return arrival.join();
        }

        @Override
        public CompletionStage<Integer> onReady(int blocks, Executor executor) {
            return arrival.thenApplyAsync(ready -> ready, executor);
        }
    }

    /// A client whose first namespace is number 1, and which has told of a chain of two blocks in slot 5 that the
    /// store has.
    private TestClient testClient() throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        assertThat(testClient.register(SPACE)).isEqualTo(1);
        assertAnswers(testClient, """
                4b564331 1000 0000 0000000000000000 40000000 00000000 0000000000000000
                05 05 0000 01000000 00000000 02000000
                000102030405060708090a0b0c0d0e0f 0000000000000000
                101112131415161718191a1b1c1d1e1f 00000000000004d2
                """, "");
        for (int index = 0; index < 2; index++) {
            assertAnswers(testClient, """
                    4b564331 2300 0000 0300000000000000 18000000 20000000 0000000000000000
                    05 000000 02000000 0%d000000 00000000 73c2a486 00000000
                    000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
                    """.formatted(index), """
                    4b564331 2300 0100 0300000000000000 08000000 00000000 0000000000000000
                    00 00 0000 00000000
                    """);
        }
        return testClient;
    }

    @Test
    void givenASession_whenItIsKeptAlive_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        // PING and RENEW say nothing
        assertAnswers(testClient, """
                4b564331 0300 0000 0400000000000000 00000000 00000000 0000000000000000
                """, """
                4b564331 0300 0100 0400000000000000 00000000 00000000 0000000000000000
                """);
        assertAnswers(testClient, """
                4b564331 0400 0000 0500000000000000 00000000 00000000 0000000000000000
                """, """
                4b564331 0400 0100 0500000000000000 00000000 00000000 0000000000000000
                """);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenBlocksThatComeLate_whenTheyAreThere_thenThisNews() throws ProtocolException {
        TestClient testClient = testClient();
        // ACQUIRE: from block 0, none sent, 4,096 ns; lease 1, one ready, end 2, none sent
        assertAnswers(testClient, """
                4b564331 1200 0000 0600000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 00000000 00000000 0010000000000000
                """, """
                4b564331 1200 0100 0600000000000000 14000000 00000000 0000000000000000
                0100000000000000 01000000 02000000 00000000
                """);
        arrival.complete(2);
        // PROGRESS: of lease 1, two ready, end 2
        assertHears(testClient, """
                4b564331 1300 0000 0000000000000000 10000000 00000000 0000000000000000
                0100000000000000 02000000 02000000
                """);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAStore_whenFlushedToldOfAndEmptied_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        // FLUSH: 4,096 ns; there is nothing to be made durable
        assertAnswers(testClient, """
                4b564331 3300 0000 0700000000000000 08000000 00000000 0000000000000000
                0010000000000000
                """, """
                4b564331 3300 0100 0700000000000000 01000000 00000000 0000000000000000
                00
                """);
        // SNAPSHOT: a new one, from its second event on; number 1, next 2, two stored, one event. The namespace that
        // is 1 in this session is 0 in events; what is told of in a snapshot has no sequence of its own, -1
        assertAnswers(testClient, """
                4b564331 3200 0000 0800000000000000 10000000 00000000 0000000000000000
                0000000000000000 01000000 00000000
                """, """
                4b564331 3200 0100 0800000000000000 70000000 00000000 0000000000000000
                0100000000000000 0200000000000000 02000000 01000000 01000000 00000000
                00000000 01000000
                ffffffffffffffff 00 01 0000 00000000
                101112131415161718191a1b1c1d1e1f 000102030405060708090a0b0c0d0e0f
                01000000 00000000 d204000000000000 0000000000000000
                """);
        // DROP_NAMESPACE: two blocks
        assertAnswers(testClient, """
                4b564331 0900 0000 0900000000000000 04000000 00000000 0000000000000000
                01000000
                """, """
                4b564331 0900 0100 0900000000000000 08000000 00000000 0000000000000000
                0200000000000000
                """);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }
}
