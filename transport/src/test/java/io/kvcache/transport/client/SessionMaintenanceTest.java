package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.wire.MessageType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Nothing that others throw ends the thread that keeps a session, and gets another one when it breaks.
@Timeout(180)
final class SessionMaintenanceTest {

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .build();
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);

    @AfterEach
    void close() {
        endpoint.close();
        store.close();
    }

    private static RemoteKvCache connect(Connector connector) {
        return new RemoteKvCacheBuilder(connector)
                .requestTimeout(Duration.ofSeconds(5))
                .connect();
    }

    /// Of a table that is waited for, the reply says that nothing is ready yet; no news will come of it.
    private static InProcessServer.MutatedFrame late(byte[] frame) {
        ByteBuffer bytes = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.getShort(4) == MessageType.ACQUIRE.code()) {
            bytes.putInt(32 + Long.BYTES, 0);
        }
        return new InProcessServer.MutatedFrame(frame, false);
    }

    @Test
    @Tag("slow")
    void givenAWaiterWhoseExecutorIsClosed_whenItsTableEndsLate_thenTheSessionIsKeptAndReplaced() {
        InProcessServer server = new InProcessServer(endpoint, (wire, frame) -> late(frame));
        try (RemoteKvCache cache = connect(server)) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(store, 1, 2);
            try (BlockTable table = cache.acquire(chain, 0, Duration.ofMillis(1))) {
                CompletableFuture<Integer> ready = table.onReady(2, work -> {
                            throw new RejectedExecutionException("closed");
                        })
                        .toCompletableFuture();
                assertThatThrownBy(() -> ready.get(60, TimeUnit.SECONDS))
                        .isInstanceOf(ExecutionException.class)
                        .hasCauseInstanceOf(RejectedExecutionException.class);
            }
            server.breakAll();
            TestBlocks.await("another session", () -> cache.remoteStats().sessions() == 2);
            assertThat(server.bugs()).isEmpty();
        }
    }

    @Test
    void givenAConnectorThatThrowsWhatItMay_whenTheConnectionBreaks_thenItIsTriedAgain() {
        AtomicInteger tries = new AtomicInteger();
        InProcessServer server =
                new InProcessServer(endpoint, (wire, frame) -> new InProcessServer.MutatedFrame(frame, false));
        Connector failing = (handler, timeoutNanos) -> {
            switch (tries.getAndIncrement()) {
                case 1 -> throw new IllegalStateException("a bug");
                case 2 -> throw new OutOfMemoryError("unable to create native thread");
                default -> {}
            }
            return server.connect(handler, timeoutNanos);
        };
        try (RemoteKvCache cache = connect(failing)) {
            server.breakAll();
            TestBlocks.await("another session", () -> cache.remoteStats().sessions() == 2);
            assertThat(tries).hasValueGreaterThanOrEqualTo(4);
        }
    }

    @Test
    void givenAConnectorThatThrows_whenConnected_thenItIsThrownToTheCaller() {
        Supplier<RuntimeException> bug = () -> new IllegalStateException("a bug");
        assertThatThrownBy(() -> connect((handler, timeoutNanos) -> {
                    throw bug.get();
                }))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("a bug");
    }
}
