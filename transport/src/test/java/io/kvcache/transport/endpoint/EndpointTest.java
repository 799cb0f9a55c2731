package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// An endpoint without a network, by a clock that the test moves.
final class EndpointTest {

    private static final int BYTES = 1 << 16;

    private final EndpointFixture endpointFixture = new EndpointFixture();

    @AfterEach
    void nothingIsLeft() {
        endpointFixture.requireNothingLeft();
    }

    private static long lease(TestClient testClient, int slot, int length) throws ProtocolException {
        BodyWriter body = TestClient.chainReference(slot, length).i32(0).i32(0).i64(0);
        return testClient.request(MessageType.ACQUIRE, body).reader().i64("lease");
    }

    private static long reserve(TestClient testClient, int slot, BlockChain chain, int index) throws ProtocolException {
        BodyWriter body = TestClient.chainReference(slot, chain.length())
                .i32(index)
                .i32(0)
                .i64(0);
        BodyReader reply = testClient.request(MessageType.RESERVE, body).reader();
        assertThat(reply.u8("outcome")).isZero();
        return reply.skip(7).i64("reservation");
    }

    @Test
    void givenStoredBlocks_whenAcquired_thenEachComesWithItsBytesAndChecksum() throws ProtocolException {
        BlockChain chain = endpointFixture.stored(1, 3);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            testClient.send(MessageType.CHAIN, TestClient.chain(5, testClient.register(EndpointFixture.SPACE), chain));
            List<RecordingSink.ReceivedFrame> frames = testClient.request(
                    TestClient.chainReference(5, 3).i32(1).i32(100).i64(0).request(MessageType.ACQUIRE, 9, 0));
            assertThat(frames).hasSize(3).allMatch(frame -> frame.header().request() == 9);
            for (int index = 1; index < 3; index++) {
                RecordingSink.ReceivedFrame data = frames.get(index);
                BodyReader body = data.reader();
                assertThat(data.header().type()).isEqualTo(MessageType.DATA.code());
                assertThat(body.i32("index")).isEqualTo(index);
                MemorySegment bytes = MemorySegment.ofArray(data.payload());
                assertThat(body.i32("checksum")).isEqualTo(ChunkedCrc.of(bytes));
                BlockContent.of(chain.key(index)).requireEqual(bytes);
            }
            assertThat(endpoint.stats().leases().open()).isEqualTo(1);
            testClient.send(
                    MessageType.RELEASE,
                    new BodyWriter()
                            .i32(1)
                            .i32(0)
                            .i64(frames.getFirst().reader().i64("lease")));
            assertThat(endpoint.stats().leases().open()).isZero();
            assertThat(endpoint.stats().bytesOut()).isEqualTo(2L * BYTES);
        }
    }

    @Test
    void givenClients_whenTheyUseNamespaces_thenTheirProgramsAreKnownUntilTheyEnd() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            testClient.register(EndpointFixture.SPACE);
            TestClient.connect(endpoint);
            Map<Namespace, Set<String>> clients = new HashMap<>();
            endpoint.addClients(clients);
            assertThat(clients).isEqualTo(Map.of(EndpointFixture.SPACE, Set.of("engine 1.0")));
            testClient.end(DisconnectReason.SILENT);
            Map<Namespace, Set<String>> later = new HashMap<>();
            endpoint.addClients(later);
            assertThat(later).isEmpty();
        }
    }

    @Test
    void givenRequests_whenTheyAreAnswered_thenThoseOfTheLoadAreTimed() throws ProtocolException {
        List<MessageType> timed = new ArrayList<>();
        EndpointListener listener = new EndpointListener() {
            @Override
            public void onAnswered(MessageType type, long nanos) {
                assertThat(nanos).isPositive();
                timed.add(type);
            }
        };
        BlockChain chain = endpointFixture.stored(1, 3);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS.withListener(listener))) {
            TestClient testClient = TestClient.connect(endpoint);
            testClient.send(MessageType.CHAIN, TestClient.chain(0, testClient.register(EndpointFixture.SPACE), chain));
            lease(testClient, 0, 3);
            testClient.request(MessageType.STATS, new BodyWriter());
            testClient.request(MessageType.MATCH, TestClient.chainReference(0, 2));
        }
        assertThat(timed).containsExactly(MessageType.ACQUIRE, MessageType.MATCH);
    }

    @Test
    void givenALease_whenItsClientIsSilent_thenItEndsWithTheSession() throws ProtocolException {
        BlockChain chain = endpointFixture.stored(1, 3);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            testClient.send(MessageType.CHAIN, TestClient.chain(0, testClient.register(EndpointFixture.SPACE), chain));
            lease(testClient, 0, 3);
            reserve(testClient, 0, tell(testClient, 0, EndpointFixture.chain(2, 1)), 0);
            endpointFixture.advance(Duration.ofSeconds(9));
            testClient.request(MessageType.RENEW, new BodyWriter());
            endpointFixture.advance(Duration.ofSeconds(9));
            assertThat(endpoint.tick()).isZero();
            assertThat(endpointFixture.store().stats().openTables()).isEqualTo(2);
            endpointFixture.advance(Duration.ofSeconds(2));
            assertThat(endpoint.tick()).isEqualTo(1);
            assertThat(endpointFixture.store().stats().openTables()).isZero();
            assertThat(testClient.reason()).isEqualTo(DisconnectReason.SILENT);
            testClient.end(DisconnectReason.SILENT);
            EndpointStats stats = endpoint.stats();
            assertThat(stats.leases()).isEqualTo(new EndpointStats.HandleCounts(1, 0, 1));
            assertThat(stats.reservations()).isEqualTo(new EndpointStats.HandleCounts(1, 0, 1));
            assertThat(stats.sessionsExpired()).isEqualTo(1);
            assertThat(stats.sessions()).isZero();
            assertThat(stats.closed()).containsEntry(DisconnectReason.SILENT, 1L);
        }
    }

    @Test
    void givenAFrameThatTakesLongerThanALease_whenItsBytesCome_thenItsClientIsNotSilent() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            byte[] frame =
                    RecordingSink.bytes(new BodyWriter().bytes(new byte[3000]).request(MessageType.PING, 1, 0));
            for (int from = 0; from + 1000 < frame.length; from += 1000) {
                assertThat(testClient.request(Arrays.copyOfRange(frame, from, from + 1000)))
                        .isEmpty();
                endpointFixture.advance(Duration.ofSeconds(9));
                assertThat(endpoint.tick()).isZero();
            }
            assertThat(testClient.request(Arrays.copyOfRange(frame, 3000, frame.length)))
                    .hasSize(1);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    private static BlockChain tell(TestClient testClient, int slot, BlockChain chain) throws ProtocolException {
        testClient.send(MessageType.CHAIN, TestClient.chain(slot, testClient.register(EndpointFixture.SPACE), chain));
        return chain;
    }

    @Test
    void givenAConnectionThatBreaks_whenItWasTheSessionsFirst_thenAllItHeldIsBack() throws ProtocolException {
        BlockChain chain = endpointFixture.stored(1, 3);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = new TestClient(endpoint);
            Welcome welcome = Welcome.read(testClient.handshake("", null, null).reader());
            TestClient second = new TestClient(endpoint);
            second.handshake("", null, welcome);
            tell(second, 3, chain);
            lease(second, 3, 3);
            second.request(MessageType.PING, new BodyWriter());
            reserve(second, 1, tell(second, 1, EndpointFixture.chain(2, 1)), 0);
            testClient.end(DisconnectReason.BROKEN);
            assertThat(endpointFixture.store().stats().openTables()).isZero();
            assertThat(second.reason()).isEqualTo(DisconnectReason.SESSION_OVER);
            second.end(DisconnectReason.SESSION_OVER);
            assertThat(endpoint.stats().connections()).isZero();
        }
    }

    @Test
    void givenALeaseWhoseAnswerMayBeLost_whenItsConnectionBreaks_thenItEnds() throws ProtocolException {
        BlockChain chain = endpointFixture.stored(1, 3);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = new TestClient(endpoint);
            Welcome welcome = Welcome.read(testClient.handshake("", null, null).reader());
            TestClient second = new TestClient(endpoint);
            second.handshake("", null, welcome);
            tell(second, 3, chain);
            lease(second, 3, 3);
            lease(second, 3, 3);
            second.end(DisconnectReason.BROKEN);
            assertThat(endpoint.stats().leases().open())
                    .as("the first answer was heard")
                    .isEqualTo(1);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAConnectionThatBreaksInAPayload_whenLookedUp_thenTheRoomIsBack() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS);
                Arena arena = Arena.ofConfined()) {
            TestClient testClient = TestClient.connect(endpoint);
            BlockChain chain = tell(testClient, 0, EndpointFixture.chain(1, 1));
            long reservation = reserve(testClient, 0, chain, 0);
            Payload payload = Payload.of(List.of(arena.allocate(BYTES)));
            byte[] fill = RecordingSink.bytes(
                    new BodyWriter().i64(reservation).i32(0).i32(0).request(MessageType.FILL, 7, 0, payload));
            testClient.request(Arrays.copyOf(fill, 40_000));
            assertThat(endpointFixture.store().stats().openTables()).isEqualTo(1);
            testClient.end(DisconnectReason.BROKEN);
            assertThat(endpointFixture.store().stats().openTables()).isZero();
            assertThat(endpointFixture.store().stats().puts().abandoned()).isEqualTo(1);
            assertThat(endpointFixture.store().match(chain).blocks()).isZero();
        }
    }

    @Test
    void givenBytesWithoutTheirChecksum_whenFilled_thenRefusedAndNotFindable() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS);
                Arena arena = Arena.ofConfined()) {
            TestClient testClient = TestClient.connect(endpoint);
            BlockChain chain = tell(testClient, 0, EndpointFixture.chain(1, 1));
            MemorySegment bytes = arena.allocate(BYTES);
            BlockContent.of(chain.key(0)).fill(bytes);
            Payload payload = Payload.of(List.of(bytes));
            for (int wrong = 1; wrong >= 0; wrong--) {
                long reservation = reserve(testClient, 0, chain, 0);
                BodyWriter body = new BodyWriter()
                        .i64(reservation)
                        .i32(ChunkedCrc.of(bytes) + wrong)
                        .i32(0);
                RecordingSink.ReceivedFrame reply = testClient
                        .request(body.request(MessageType.FILL, 7, 0, payload))
                        .getFirst();
                assertThat(reply.header().status()).isEqualTo(wrong == 1 ? Status.CORRUPT : Status.OK);
                assertThat(endpointFixture.store().match(chain).blocks()).isEqualTo(1 - wrong);
            }
            assertThat(endpoint.stats().corrupt()).isEqualTo(1);
            RecordingSink.ReceivedFrame again = testClient
                    .request(new BodyWriter().i64(1).i32(0).i32(0).request(MessageType.FILL, 8, 0, payload))
                    .getFirst();
            assertThat(again.header().status()).isEqualTo(Status.GONE);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAChainThatGrowsAndForks_whenToldByWhatIsNew_thenMatchedAsAWhole() throws ProtocolException {
        BlockChain chain = endpointFixture.stored(1, 6);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            int space = testClient.register(EndpointFixture.SPACE);
            testClient.send(MessageType.CHAIN, TestClient.chain(0, space, chain.prefix(2)));
            BodyWriter more =
                    new BodyWriter().u8(1).u8(0).u16(0).i32(space).i32(2).i32(4);
            for (int i = 2; i < 6; i++) {
                more.bigEndian(chain.keyHi(i)).bigEndian(chain.keyLo(i)).bigEndian(0);
            }
            testClient.send(MessageType.CHAIN, more);
            for (int length = 0; length <= 6; length++) {
                BodyReader reply = testClient
                        .request(MessageType.MATCH, TestClient.chainReference(1, length))
                        .reader();
                assertThat(reply.skip(4).i32("host")).isEqualTo(length);
            }
            assertThatThrownBy(() -> testClient.request(MessageType.MATCH, TestClient.chainReference(0, 3)))
                    .isInstanceOf(ProtocolException.class)
                    .hasMessageContainingAll("3 blocks", "slot 0", "0 to 2");
            testClient.end(DisconnectReason.MALFORMED);
        }
    }

    @Test
    void givenAnUnknownMessage_whenAsked_thenUnsupportedAndTheConnectionGoesOn() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            byte[] unknown = RecordingSink.bytes(new BodyWriter().i64(5).request(MessageType.PING, 77, 0));
            unknown[4] = 99;
            RecordingSink.ReceivedFrame reply = testClient.request(unknown).getFirst();
            assertThat(reply.header().status()).isEqualTo(Status.UNSUPPORTED);
            assertThat(reply.header().type()).isEqualTo(99);
            assertThat(reply.header().request()).isEqualTo(77);
            assertThat(testClient
                            .request(MessageType.PING, new BodyWriter().i64(1).i64(2))
                            .header()
                            .status())
                    .as("a body longer than it is known")
                    .isEqualTo(Status.OK);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAConnectionThatSaysNothing_whenTimePasses_thenClosed() {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = new TestClient(endpoint);
            endpointFixture.advance(Duration.ofSeconds(1));
            endpoint.tick();
            assertThat(testClient.reason()).isNull();
            endpointFixture.advance(Duration.ofSeconds(2));
            endpoint.tick();
            assertThat(testClient.reason()).isEqualTo(DisconnectReason.SILENT);
            testClient.end(DisconnectReason.SILENT);
        }
    }

    @Test
    void givenAServerThatIsClosed_whenAskedForWhatMayWait_thenNothingWaits() throws ProtocolException {
        Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS);
        TestClient testClient = TestClient.connect(endpoint);
        tell(testClient, 0, EndpointFixture.chain(1, 1));
        endpoint.close();
        BodyWriter body = TestClient.chainReference(0, 1).i32(0).i32(0).i64(1_000_000);
        assertThat(testClient.request(body.request(MessageType.RESERVE, 7, 0))).isEmpty();
        assertThat(endpoint.stats().waiting()).isZero();
        assertThat(endpoint.stats().refusals()).isEqualTo(1);
        testClient.end(DisconnectReason.SHUTDOWN);
    }

    @Test
    void givenMoreThanAllowed_whenAsked_thenRefusedWithTheLimit() throws ProtocolException {
        BlockChain chain = endpointFixture.stored(1, 1);
        try (Endpoint endpoint = endpointFixture.open(
                EndpointFixture.OPTIONS.withMaxConnections(1).withMaxHandles(2))) {
            TestClient testClient = TestClient.connect(endpoint);
            tell(testClient, 0, chain);
            lease(testClient, 0, 1);
            lease(testClient, 0, 1);
            RecordingSink.ReceivedFrame reply = testClient.request(
                    MessageType.ACQUIRE,
                    TestClient.chainReference(0, 1).i32(0).i32(0).i64(0));
            assertThat(reply.header().status()).isEqualTo(Status.BUSY);
            assertThat(reply.reader().text("text")).contains("allowed: 2");
            assertThat(endpointFixture.store().stats().openTables()).isEqualTo(2);
            TestClient second = new TestClient(endpoint);
            RecordingSink.ReceivedFrame refusal = second.handshake("", null, null);
            assertThat(refusal.header().status()).isEqualTo(Status.BUSY);
            assertThat(refusal.reader().text("text")).contains("1 connections are open; allowed: 1");
            assertThat(second.reason()).isEqualTo(DisconnectReason.OVER_LIMIT);
            second.end(DisconnectReason.OVER_LIMIT);
            testClient.end(DisconnectReason.PEER_CLOSED);
            TestClient.connect(endpoint).end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAnotherShape_whenRegistered_thenBothShapesAreTold() throws ProtocolException {
        endpointFixture.store().register(EndpointFixture.SPACE);
        BlockShape other = BlockShape.kv(2, 1, 1024, 16, Dtype.BF16);
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            BodyWriter body = new BodyWriter();
            NamespaceCodec.write(Namespace.of("m", other), body);
            RecordingSink.ReceivedFrame reply = testClient.request(MessageType.REGISTER, body);
            assertThat(reply.header().status()).isEqualTo(Status.INVALID);
            assertThat(reply.reader().text("text"))
                    .contains(other.describe())
                    .contains(EndpointFixture.SPACE.parts().getFirst().shape().describe());
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }
}
