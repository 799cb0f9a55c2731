package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What a call waits for at a connection is one time and not one for each of its parts.
@Timeout(180)
final class DataConnectionPoolTest {

    private static final long REQUEST = TimeUnit.SECONDS.toNanos(60);

    /// What connecting takes.
    private static final long SPENT = TimeUnit.MILLISECONDS.toNanos(20);

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(32 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .build();
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);
    private final CallTimeouts callTimeouts = new CallTimeouts();
    private final Connector server =
            new InProcessServer(endpoint, (wire, frame) -> new InProcessServer.MutatedFrame(frame, false));
    private final AtomicInteger connected = new AtomicInteger();
    private final AtomicLong allowed = new AtomicLong();

    @AfterEach
    void close() {
        endpoint.close();
        store.close();
    }

    static RemoteOptions options() {
        return new RemoteOptions(
                null,
                "",
                1,
                Duration.ofNanos(REQUEST),
                Duration.ofSeconds(10),
                1 << 20,
                false,
                false,
                SharedMemoryMode.OFF,
                0,
                null,
                false,
                null);
    }

    private DataConnectionPool lines() throws Exception {
        ClientHandshake.HandshakeSettings handshakeSettings =
                new ClientHandshake.HandshakeSettings(options(), callTimeouts, null, REQUEST);
        Welcome session = ClientHandshake.open(server, handshakeSettings).welcome();
        Connector slow = (handler, timeoutNanos) -> {
            long start = System.nanoTime();
            connected.incrementAndGet();
            allowed.set(timeoutNanos);
            while (System.nanoTime() - start < SPENT) {
                LockSupport.parkNanos(SPENT);
            }
            return server.connect(handler, timeoutNanos);
        };
        return new DataConnectionPool(slow, options(), callTimeouts, new ReleaseQueue(), session, new LongAdder());
    }

    @Test
    void givenAConnectionThatTakesItsTime_whenUsed_thenOnlyTheRestIsLeftForTheAnswer() throws Exception {
        DataConnectionPool lines = lines();
        AtomicLong left = new AtomicLong();
        lines.withConnection((line, patience) -> left.set(patience));
        assertThat(left.get()).isBetween(1L, REQUEST - SPENT);
        assertThat(allowed.get()).isBetween(left.get() + SPENT, REQUEST);
        lines.close();
    }

    @Test
    @Tag("slow")
    void givenAPutThatIsNotAnswered_whenItsTimeIsOver_thenItIsNotTriedOtherwise() {
        Namespace objects = Namespace.objects("o", "t");
        AtomicInteger reserving = new AtomicInteger();
        InProcessServer silent = new InProcessServer(endpoint, (wire, frame) -> {
            reserving.addAndGet(frame[4] == MessageType.RESERVE_OBJECT.code() ? 1 : 0);
            boolean lost = frame[4] == MessageType.PUT_OBJECT.code();
            return new InProcessServer.MutatedFrame(lost ? new byte[0] : frame, false);
        });
        try (RemoteKvCache cache = new RemoteKvCacheBuilder(silent)
                .requestTimeout(Duration.ofSeconds(5))
                .connect()) {
            cache.register(objects);
            MemorySegment value = MemorySegment.ofArray(new byte[10]);
            assertThat(cache.storeObject(objects, new byte[] {1}, value, KvCache.NO_WAIT))
                    .isFalse();
            assertThat(reserving).hasValue(0);
        }
    }

    @Test
    void givenATimeThatIsOver_whenUsed_thenNothingIsAskedAndTheConnectionStays() throws Exception {
        DataConnectionPool lines = lines();
        lines.withConnection((line, patience) -> assertThat(line.isOpen()).isTrue());
        assertThatThrownBy(() -> lines.withConnection(System.nanoTime() - 1, (line, patience) -> {
                    throw new AssertionError("there is no time to ask");
                }))
                .isInstanceOf(RpcException.class)
                .hasMessage("the timeout passed before the request was sent");
        lines.withConnection((line, patience) -> assertThat(line.isOpen()).isTrue());
        assertThat(connected).as("connections").hasValue(1);
        lines.close();
    }
}
