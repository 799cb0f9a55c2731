package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.endpoint.EndpointOptions.HeapLimits;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// How much of the heap the chains that clients tell may take.
final class ChainHeapLimitsTest {

    private static final EndpointOptions OPTIONS = EndpointFixture.OPTIONS.withHeap(
            new HeapLimits(100, 200L * ChainCache.BLOCK_BYTES, 300L * ChainCache.BLOCK_BYTES, 1, 1));

    private final EndpointFixture endpointFixture = new EndpointFixture();

    @BeforeEach
    void register() {
        endpointFixture.store().register(EndpointFixture.SPACE);
    }

    @AfterEach
    void nothingIsLeft() {
        endpointFixture.requireNothingLeft();
    }

    private static void tell(TestClient testClient, int slot, int blocks) throws ProtocolException {
        testClient.send(
                MessageType.CHAIN,
                TestClient.chain(
                        slot, testClient.register(EndpointFixture.SPACE), EndpointFixture.chain(slot, blocks)));
    }

    private static void require(TestClient testClient, int slot, Status status, String text) throws ProtocolException {
        RecordingSink.ReceivedFrame reply = testClient.request(MessageType.MATCH, TestClient.chainReference(slot, 1));
        assertThat(reply.header().status()).isEqualTo(status);
        if (status != Status.OK) {
            assertThat(reply.reader().text("text")).contains(text);
        }
    }

    @Test
    void givenAChainThatIsTooLong_whenSpokenOf_thenRefusedWithTheLimitAndTheConnectionGoesOn()
            throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            tell(testClient, 0, 101);
            require(testClient, 0, Status.INVALID, "a chain of 101 blocks; allowed: 0 to 100");
            tell(testClient, 0, 100);
            require(testClient, 0, Status.OK, "");
            BodyWriter grown = new BodyWriter().u8(0).u8(0).u16(0).i32(testClient.register(EndpointFixture.SPACE));
            testClient.send(
                    MessageType.CHAIN, grown.i32(100).i32(1).i64(1).i64(1).i64(1));
            require(testClient, 0, Status.INVALID, "a chain of 101 blocks");
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAConnectionWithManyChains_whenOneMoreIsTold_thenTheOneUsedLeastRecentlyIsGivenUp()
            throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            tell(testClient, 0, 100);
            tell(testClient, 1, 100);
            require(testClient, 0, Status.OK, "");
            tell(testClient, 2, 1);
            require(testClient, 2, Status.OK, "");
            require(testClient, 0, Status.OK, "");
            require(testClient, 1, Status.BUSY, "given up for others");
            BodyWriter forked = new BodyWriter().u8(3).u8(1).u16(0).i32(testClient.register(EndpointFixture.SPACE));
            testClient.send(MessageType.CHAIN, forked.i32(1).i32(0));
            require(testClient, 3, Status.BUSY, "given up for others");
            tell(testClient, 1, 99);
            for (int slot = 0; slot < 3; slot++) {
                require(testClient, slot, Status.OK, "");
            }
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAChainTooLongForAConnection_whenTold_thenItIsBusyAndTheOthersStay() throws ProtocolException {
        HeapLimits limits = new HeapLimits(300, 200L * ChainCache.BLOCK_BYTES, 300L * ChainCache.BLOCK_BYTES, 1, 1);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS.withHeap(limits))) {
            TestClient testClient = TestClient.connect(endpoint);
            tell(testClient, 0, 200);
            tell(testClient, 1, 201);
            require(testClient, 1, Status.BUSY, "a chain of 9648 bytes; allowed for all of this connection: 9600");
            require(testClient, 0, Status.OK, "");
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenConnectionsThatTookAll_whenAnotherTells_thenTheOneThatTookMostGivesUp() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(OPTIONS)) {
            TestClient first = TestClient.connect(endpoint);
            tell(first, 0, 100);
            tell(first, 1, 100);
            TestClient second = TestClient.connect(endpoint);
            tell(second, 0, 100);
            tell(second, 1, 1);
            require(second, 0, Status.OK, "");
            require(second, 1, Status.OK, "");
            require(first, 0, Status.BUSY, "given up for others");
            require(first, 1, Status.OK, "");
            tell(first, 0, 100);
            require(first, 0, Status.OK, "");
            require(first, 1, Status.OK, "");
            require(second, 0, Status.BUSY, "given up for others");
            require(second, 1, Status.OK, "");
            first.end(DisconnectReason.PEER_CLOSED);
            assertThat(endpoint.context().chains().reservedBytes()).isEqualTo(ChainCache.BLOCK_BYTES);
            second.end(DisconnectReason.PEER_CLOSED);
            assertThat(endpoint.context().chains().reservedBytes()).isZero();
        }
    }

    @Test
    @Timeout(180)
    void givenConnectionsThatTellAtOnce_whenEachTakesFromTheOthers_thenNoMoreIsTakenThanAllowedAndNothingStays()
            throws Exception {
        try (Endpoint endpoint = endpointFixture.open(OPTIONS);
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Callable<Void>> tellers = Collections.nCopies(4, () -> {
                TestClient testClient = TestClient.connect(endpoint);
                for (int round = 0; round < 300; round++) {
                    tell(testClient, round % ChainCache.SLOT_COUNT, 1 + round * 7 % 100);
                    assertThat(endpoint.context().chains().reservedBytes())
                            .isBetween(0L, 300L * ChainCache.BLOCK_BYTES);
                }
                testClient.end(DisconnectReason.PEER_CLOSED);
                return null;
            });
            for (Future<Void> teller : threads.invokeAll(tellers)) {
                teller.get();
            }
            assertThat(endpoint.context().chains().reservedBytes()).isZero();
        }
    }

    @Test
    void givenAPutOfAChainWithoutRoom_whenItsBytesCome_thenTheyAreThrownAwayAndItIsRefused() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            tell(testClient, 0, 101);
            MemorySegment bytes = Arena.ofAuto().allocate(1 << 16);
            BodyWriter body = TestClient.chainReference(0, 1)
                    .i32(0)
                    .i32(0)
                    .i32(ChunkedCrc.of(bytes))
                    .i32(0);
            List<RecordingSink.ReceivedFrame> replies =
                    testClient.request(body.request(MessageType.PUT, 7, 0, Payload.of(List.of(bytes))));
            assertThat(replies).hasSize(1);
            assertThat(replies.getFirst().header().status()).isEqualTo(Status.INVALID);
            assertThat(testClient
                            .request(MessageType.PING, new BodyWriter())
                            .header()
                            .status())
                    .isEqualTo(Status.OK);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }
}
