package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// An endpoint that goes down, by a clock that the test moves.
final class GracefulShutdownTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));
    private static final int BYTES = 1 << 16;
    private static final Duration MOMENT = Duration.ofMillis(101);

    private final AtomicLong nanos = new AtomicLong(1);
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .build();
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, nanos::get);
    private final BlockChain chain = BlockChain.of(SPACE, IntStream.range(0, 16).toArray());

    @AfterEach
    void close() {
        endpoint.close();
        store.close();
    }

    private boolean drainedAfter(Duration time, boolean moving) {
        nanos.addAndGet(time.toNanos());
        return endpoint.isDrained(moving);
    }

    private TestClient testClient() throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        testClient.send(MessageType.CHAIN, TestClient.chain(0, testClient.register(SPACE), chain));
        return testClient;
    }

    private static RecordingSink.ReceivedFrame reserve(TestClient testClient) throws ProtocolException {
        return testClient.request(
                MessageType.RESERVE,
                TestClient.chainReference(0, 1).i32(0).i32(0).i64(0));
    }

    private static long reservation(RecordingSink.ReceivedFrame reply) throws ProtocolException {
        BodyReader body = reply.reader();
        assertThat(body.u8("outcome")).isZero();
        return body.skip(7).i64("reservation");
    }

    private RecordingSink.ReceivedFrame fill(TestClient testClient, long reservation) throws ProtocolException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BYTES);
            BlockContent.of(chain.key(0)).fill(bytes);
            BodyWriter body =
                    new BodyWriter().i64(reservation).i32(ChunkedCrc.of(bytes)).i32(0);
            return testClient
                    .request(body.request(MessageType.FILL, 100, 0, Payload.of(List.of(bytes))))
                    .getFirst();
        }
    }

    @Test
    void givenAPutThatHasItsRoom_whenDraining_thenItIsWaitedForAndStored() throws ProtocolException {
        TestClient testClient = testClient();
        long reservation = reservation(reserve(testClient));

        endpoint.drain();

        assertThat(drainedAfter(Duration.ofSeconds(1), false)).isFalse();
        assertThat(fill(testClient, reservation).header().status()).isEqualTo(Status.OK);
        assertThat(drainedAfter(Duration.ofMillis(50), false)).as("not yet").isFalse();
        assertThat(drainedAfter(MOMENT, false)).isTrue();
        assertThat(store.match(chain).blocks()).isEqualTo(1);
        testClient.end(DisconnectReason.SHUTDOWN);
    }

    @Test
    void givenAServerThatGoesDown_whenSomethingNewIsAskedFor_thenBusyAndNothingIsHeld() throws ProtocolException {
        TestClient testClient = testClient();
        assertThat(fill(testClient, reservation(reserve(testClient))).header().status())
                .isEqualTo(Status.OK);

        endpoint.drain();

        for (MessageType type : List.of(MessageType.ACQUIRE, MessageType.RESERVE)) {
            RecordingSink.ReceivedFrame reply = testClient.request(
                    type, TestClient.chainReference(0, 1).i32(0).i32(0).i64(0));
            assertThat(reply.header().status()).isEqualTo(Status.BUSY);
            assertThat(reply.reader().text("text")).contains("going down");
        }
        BodyWriter range =
                TestClient.chainReference(0, 1).i32(0).i32(1).i32(0).i32(1).i64(0);
        assertThat(testClient.request(MessageType.READ_RANGE, range).header().status())
                .isEqualTo(Status.BUSY);
        TestClient late = new TestClient(endpoint);
        assertThat(late.handshake("", null, null).header().status()).isEqualTo(Status.BUSY);
        assertThat(late.reason()).isEqualTo(DisconnectReason.SHUTDOWN);
        late.end(DisconnectReason.SHUTDOWN);
        assertThat(drainedAfter(MOMENT, false)).isTrue();
        assertThat(store.stats().openTables()).isZero();
        testClient.end(DisconnectReason.SHUTDOWN);
    }

    @Test
    void givenASession_whenDraining_thenAnotherConnectionMayJoinIt() throws ProtocolException {
        TestClient first = new TestClient(endpoint);
        Welcome welcome = Welcome.read(first.handshake("", null, null).reader());

        endpoint.drain();

        TestClient second = new TestClient(endpoint);
        assertThat(second.handshake("", null, welcome).header().status()).isEqualTo(Status.OK);
        second.end(DisconnectReason.PEER_CLOSED);
        first.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenBytesOnTheirWay_whenDraining_thenTheyAreWaitedFor() {
        endpoint.drain();

        assertThat(drainedAfter(Duration.ofSeconds(1), true)).isFalse();
        assertThat(drainedAfter(MOMENT, false)).isTrue();
    }

    @Test
    void givenAnEndpointThatServes_whenAsked_thenItIsNotDrained() {
        assertThat(drainedAfter(Duration.ofSeconds(1), false)).isFalse();
    }
}
