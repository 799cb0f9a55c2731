package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions.HeapLimits;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// How many snapshots clients may have an endpoint keep, and for how long.
@Timeout(120)
@Tag("slow")
final class SnapshotCursorsTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    /// More than one piece has.
    private static final int ENTRIES = 8193;

    private static final EndpointOptions OPTIONS =
            EndpointFixture.OPTIONS.withStallTimeout(Duration.ofSeconds(3)).withHeap(limits(ENTRIES));

    private final AtomicLong nanos = new AtomicLong(1);
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .build();

    private static HeapLimits limits(long entries) {
        return new HeapLimits(100, 10_000, 10_000, 1, entries);
    }

    @BeforeEach
    void store() {
        store.register(SPACE);
        BlockChain chain = BlockChain.of(SPACE, IntStream.range(0, ENTRIES).toArray());
        for (int index = 0; index < ENTRIES; index++) {
            try (BlockWriter writer = store.put(chain, index, 0, KvCache.NO_WAIT)) {
                writer.seal();
            }
        }
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static BodyReader answer(TestClient testClient, long number, int first, Status status)
            throws ProtocolException {
        BodyWriter body = new BodyWriter().i64(number).i32(first).i32(0);
        List<RecordingSink.ReceivedFrame> heard = testClient.request(body.request(MessageType.SNAPSHOT, 5, 0));
        long start = System.nanoTime();
        while (heard.isEmpty()) { // a thread of its own makes it
            EndpointFixture.pollOnce("a snapshot", start);
            heard = testClient.receivedFrames();
        }
        assertThat(heard.getFirst().header().status()).isEqualTo(status);
        return heard.getFirst().reader();
    }

    private static long taken(TestClient testClient) throws ProtocolException {
        BodyReader reply = answer(testClient, 0, 0, Status.OK);
        long number = reply.i64("snapshot");
        assertThat(reply.skip(8).count("stored")).isEqualTo(ENTRIES);
        return number;
    }

    private static void requireBusy(TestClient testClient) throws ProtocolException {
        assertThat(answer(testClient, 0, 0, Status.BUSY).text("text"))
                .contains("1 snapshots are being read; allowed: 1");
    }

    @Test
    void givenASnapshotThatIsRead_whenAnotherClientWantsOne_thenItIsBusyUntilTheLastPiece() throws ProtocolException {
        try (Endpoint endpoint = new Endpoint(store, OPTIONS, nanos::get)) {
            TestClient first = TestClient.connect(endpoint);
            TestClient second = TestClient.connect(endpoint);
            long number = taken(first);
            requireBusy(second);
            assertThat(taken(first)).as("another of its own").isNotEqualTo(number);
            long latest = taken(first);
            assertThat(answer(first, number, 0, Status.GONE).text("text")).contains("gave way to another");
            answer(first, latest, 8192, Status.OK);
            long seconds = taken(second);
            assertThat(answer(first, latest, 8192, Status.GONE).text("text")).contains("was read");
            answer(second, seconds, 8192, Status.OK);
            first.end(DisconnectReason.PEER_CLOSED);
            second.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenASnapshotThatNobodyReadsOn_whenTimePassesOrItsSessionEnds_thenItsPlaceIsFree() throws ProtocolException {
        try (Endpoint endpoint = new Endpoint(store, OPTIONS, nanos::get)) {
            TestClient first = TestClient.connect(endpoint);
            TestClient second = TestClient.connect(endpoint);
            long number = taken(first);
            nanos.addAndGet(Duration.ofSeconds(2).toNanos());
            answer(first, number, 0, Status.OK);
            nanos.addAndGet(Duration.ofSeconds(2).toNanos());
            endpoint.tick();
            requireBusy(second);
            nanos.addAndGet(Duration.ofSeconds(2).toNanos());
            endpoint.tick();
            taken(second);
            requireBusy(first);
            second.end(DisconnectReason.PEER_CLOSED);
            endpoint.tick();
            taken(first);
            first.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenMoreEntriesThanAllowed_whenASnapshotIsWanted_thenRefusedWithBothNumbers() throws ProtocolException {
        EndpointOptions fewer = OPTIONS.withHeap(limits(ENTRIES - 1));
        try (Endpoint endpoint = new Endpoint(store, fewer, nanos::get)) {
            TestClient testClient = TestClient.connect(endpoint);
            assertThat(answer(testClient, 0, 0, Status.FAILED).text("text"))
                    .contains("a snapshot would have 8193 entries; allowed: 8192");
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }
}
