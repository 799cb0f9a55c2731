package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Requests that wait, and what ends them.
@Timeout(120)
final class PendingRequestsTest {

    private static final int OBJECT_BYTES = 16 << 20;

    private final AtomicLong nanos = new AtomicLong(1);
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ZERO)
            .build();
    private final List<ObjectWriter> writers = new ArrayList<>();

    @AfterEach
    void nothingIsLeft() {
        store.validate();
        store.close();
    }

    private Endpoint open(KvCache cache, EndpointOptions options) {
        return new Endpoint(cache, options, nanos::get);
    }

    private void fill() {
        store.register(EndpointFixture.SPACE);
        boolean room = true;
        while (room) {
            ObjectWriter writer = store.putObject(
                    EndpointFixture.SPACE, new byte[] {2, (byte) writers.size()}, OBJECT_BYTES, KvCache.NO_WAIT);
            room = writer.outcome() == PutOutcome.RESERVED;
            writers.add(writer);
        }
    }

    /// Waits for room for as long as there is time, and does not say how long that is.
    private static TestClient reserving(Endpoint endpoint) throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        BodyWriter body =
                new BodyWriter().i32(testClient.register(EndpointFixture.SPACE)).i32(1);
        body.i64(OBJECT_BYTES).i64(Long.MAX_VALUE).u8(1);
        assertThat(testClient.request(body.request(MessageType.RESERVE_OBJECT, 9, 0)))
                .isEmpty();
        assertThat(endpoint.stats().waiting()).isEqualTo(1);
        return testClient;
    }

    @Test
    void givenAPutThatWaitsForRoom_whenItsSessionEnds_thenItWaitsNoMore() throws ProtocolException {
        fill();
        try (Endpoint endpoint = open(store, EndpointOptions.DEFAULTS)) {
            reserving(endpoint).end(DisconnectReason.PEER_CLOSED);
            EndpointFixture.await("what waited", () -> endpoint.stats().waiting() == 0);
            assertThat(endpoint.stats().reservations().open()).isZero();
        }
        writers.forEach(ObjectWriter::close);
    }

    @Test
    void givenAPutThatWaitsForRoom_whenTheEndpointIsClosed_thenNothingUsesTheStoreAnyMore() throws ProtocolException {
        fill();
        Endpoint endpoint = open(store, EndpointOptions.DEFAULTS);
        TestClient testClient = reserving(endpoint);
        endpoint.close();
        assertThat(endpoint.stats().waiting()).isZero();
        testClient.end(DisconnectReason.SHUTDOWN);
        writers.forEach(ObjectWriter::close);
    }

    /// The store, but objects come when the test has them come.
    private KvCache slow(CompletableFuture<@Nullable ObjectView> object) {
        return new ForwardingKvCache(store) {
            @Override
            public CompletionStage<@Nullable ObjectView> fetchObject(
                    Namespace namespace, byte[] key, Duration timeout, Executor executor) {
                return object;
            }
        };
    }

    private static List<RecordingSink.ReceivedFrame> get(TestClient testClient, int namespace)
            throws ProtocolException {
        BodyWriter body =
                new BodyWriter().i32(namespace).i32(1).u8(0).u8(0).u16(0).i32(0);
        return testClient.request(body.i64(1_000_000).u8(1).request(MessageType.GET_OBJECT, 9, 0));
    }

    @Test
    void givenObjectsThatAreSlow_whenAskedFor_thenTheyAreRequestsThatWait() throws ProtocolException {
        CompletableFuture<@Nullable ObjectView> object = new CompletableFuture<>();
        try (Endpoint endpoint = open(slow(object), EndpointOptions.DEFAULTS.withMaxPendingRequests(1))) {
            TestClient testClient = TestClient.connect(endpoint);
            int namespace = testClient.register(EndpointFixture.SPACE);
            assertThat(get(testClient, namespace)).isEmpty();
            RecordingSink.ReceivedFrame second = get(testClient, namespace).getFirst();
            assertThat(second.header().status()).isEqualTo(Status.BUSY);
            assertThat(second.reader().text("text")).contains("1 requests wait already; allowed: 1");
            endpoint.drain();
            nanos.addAndGet(Duration.ofSeconds(1).toNanos());
            assertThat(endpoint.isDrained(false)).as("one waits").isFalse();
            object.complete(null);
            assertThat(testClient.receivedFrames()).hasSize(1);
            nanos.addAndGet(Duration.ofSeconds(1).toNanos());
            assertThat(endpoint.isDrained(false)).isTrue();
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }
}
