package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
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

    /// A session whose renewals the server never answers, and which has just sent one.
    private RemoteSession sessionWithPendingRenewal(long nowNanos) throws Exception {
        InProcessServer server = new InProcessServer(
                endpoint,
                (wire, frame) -> new InProcessServer.MutatedFrame(isRenewal(frame) ? new byte[0] : frame, false));
        RemoteSession session = RemoteSession.open(
                server,
                new RemoteSession.SessionSettings(
                        DataConnectionPoolTest.options(), new SharedStore.OneSidedCounters(), 0),
                new CallTimeouts(),
                () -> {});
        session.requestLifeSign();
        session.heartbeat(nowNanos);
        return session;
    }

    private static boolean isRenewal(byte[] frame) {
        return ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).getShort(4) == MessageType.RENEW.code();
    }

    @Test
    void givenASilentServer_whenTheTimeoutPasses_thenTheSessionEnds() throws Exception {
        long start = System.nanoTime();
        RemoteSession session = sessionWithPendingRenewal(start);
        long timeout = DataConnectionPoolTest.options().requestTimeoutNanos();
        session.closeIfUnresponsive(start + timeout);
        assertThat(session.isClosed()).isFalse();
        session.closeIfUnresponsive(start + timeout + 1);
        TestBlocks.await("its end", session::isClosed);
    }

    /// A busy server may answer requests for blocks at once and a renewal late, as other threads do that.
    @Test
    void givenAServerThatAnswersOtherRequests_whenARenewalIsLate_thenTheSessionGoesOn() throws Exception {
        long start = System.nanoTime();
        RemoteSession session = sessionWithPendingRenewal(start);
        long timeout = DataConnectionPoolTest.options().requestTimeoutNanos();
        long heard = session.heardCount();
        session.data().call(start + timeout, MessageType.PING, new BodyWriter(), body -> true);
        assertThat(session.heardCount()).isGreaterThan(heard);
        session.closeIfUnresponsive(start + timeout + 1);
        assertThat(session.isClosed()).isFalse();
        session.closeIfUnresponsive(start + 2 * timeout + 1);
        assertThat(session.isClosed()).as("heard during the last timeout").isFalse();
        session.closeIfUnresponsive(start + 2 * timeout + 2);
        TestBlocks.await("its end", session::isClosed);
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

    /// The thread that reads hears nothing, as when a connection has ended behind its back.
    @Test
    @Timeout(30)
    void givenAConnectionThatTakesNoMore_whenCalled_thenItFailsAtOnceAndIsReplaced() {
        InProcessServer server =
                new InProcessServer(endpoint, (wire, frame) -> new InProcessServer.MutatedFrame(frame, false));
        AtomicBoolean deaf = new AtomicBoolean();
        AtomicInteger connections = new AtomicInteger();
        Connector first = (handler, timeoutNanos) -> {
            FrameConnection opened = server.connect(handler, timeoutNanos);
            return connections.getAndIncrement() == 0 ? new DeafConnection(opened, deaf) : opened;
        };
        try (RemoteKvCache cache = new RemoteKvCacheBuilder(first)
                .requestTimeout(TestBlocks.PATIENCE)
                .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(store, 1, 2);
            assertThat(cache.match(chain).blocks()).isEqualTo(2);
            deaf.set(true);
            assertThat(cache.match(chain).blocks()).isZero();
            TestBlocks.await("another session", () -> cache.remoteStats().sessions() == 2);
            TestBlocks.await("the blocks are found", () -> cache.match(chain).blocks() == 2);
        }
    }

    /// A connection that can be made to take nothing more, while its reader goes on to wait.
    private record DeafConnection(FrameConnection connection, AtomicBoolean deaf) implements FrameConnection {

        @Override
        public boolean send(OutboundFrame frame) {
            return !deaf.get() && connection.send(frame);
        }

        @Override
        public void close(DisconnectReason reason) {
            if (!deaf.get()) {
                connection.close(reason);
            }
        }

        @Override
        public void share() throws IOException {
            connection.share();
        }

        @Override
        public boolean pump() {
            return connection.pump();
        }

        @Override
        public boolean isOpen() {
            return connection.isOpen();
        }

        @Override
        public long stalledNanos() {
            return connection.stalledNanos();
        }
    }
}
