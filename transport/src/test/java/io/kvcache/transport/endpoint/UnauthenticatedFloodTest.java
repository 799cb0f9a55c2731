package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.wire.OutboundFrame;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// What a flood of those who do not say who they are does to those who do.
@Timeout(300)
final class UnauthenticatedFloodTest {

    private static final String SECRET = "a secret of some length";
    private static final int MAX_CONNECTIONS = 8;

    private final EndpointFixture endpointFixture = new EndpointFixture();

    @AfterEach
    void nothingIsLeft() {
        endpointFixture.requireNothingLeft();
    }

    /// Counts how often it is asked where it is.
    private record UnauthenticatedSink(AtomicInteger asked, AtomicInteger closed) implements FrameSink {

        @Override
        public boolean send(OutboundFrame frame) {
            return true;
        }

        @Override
        public void close(DisconnectReason reason) {
            closed.incrementAndGet();
        }

        @Override
        public String peerAddress() {
            asked.incrementAndGet();
            return "192.0.2.1";
        }
    }

    /// All who come, go and are welcomed share a lock, so what one stranger costs there must not
    /// grow with how many there are.
    @Test
    void givenManyStrangers_whenOneMoreComes_thenTheOthersAreNotLookedAt() {
        int most = 2000;
        AtomicInteger asked = new AtomicInteger();
        AtomicInteger closed = new AtomicInteger();
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS.withMaxConnections(most))) {
            for (int i = 0; i < 3 * most; i++) {
                endpoint.onConnected(new UnauthenticatedSink(asked, closed));
            }
            assertThat(closed.get()).isEqualTo(2 * most);
            assertThat(asked.get()).isEqualTo(3 * most);
        }
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    @Tag("slow")
    void givenAFloodFromOneAddress_whenClientsOfAnotherComeAndWork_thenNoneIsKeptOutOrHeldUp() throws Exception {
        TieredKvCache store = endpointFixture.store();
        EndpointOptions options = EndpointFixture.OPTIONS
                .withAuth(EndpointAuthentication.secret(SECRET))
                .withMaxConnections(MAX_CONNECTIONS);
        AtomicBoolean over = new AtomicBoolean();
        AtomicInteger came = new AtomicInteger();
        try (TcpEndpoint endpoint =
                TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options)) {
            Thread flood = Thread.ofPlatform().start(() -> flood(endpoint.address(), over, came));
            try {
                EndpointFixture.await("more than there are places", () -> came.get() > 3 * MAX_CONNECTIONS);
                for (int round = 1; round <= 10; round++) {
                    int before = came.get();
                    try (RemoteKvCache cache = RemoteKvCache.builder(
                                    "127.0.0.1:" + endpoint.address().getPort())
                            .secret(SECRET)
                            .requestTimeout(Duration.ofSeconds(60))
                            .connect()) {
                        cache.register(EndpointFixture.SPACE);
                        assertThat(stored(cache, EndpointFixture.chain(round, 2)))
                                .isEqualTo(2);
                        assertThat(cache.remoteStats().failed()).isZero();
                    }
                    EndpointFixture.await("the flood goes on", () -> came.get() > before + 2 * MAX_CONNECTIONS);
                }
            } finally {
                over.set(true);
                flood.join();
            }
            assertThat(endpoint.stats().closed().getOrDefault(DisconnectReason.OVER_LIMIT, 0L))
                    .isPositive();
            EndpointFixture.await("all is given back", () -> endpoint.stats().sessions() == 0);
        }
    }

    private static int stored(RemoteKvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
        try (BlockTable table = cache.acquire(chain)) {
            for (int index = 0; index < table.readyBlocks(); index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return table.readyBlocks();
        }
    }

    /// Opens one connection after the other from another address of this machine, and says nothing.
    private static void flood(InetSocketAddress server, AtomicBoolean over, AtomicInteger came) {
        Deque<Socket> open = new ArrayDeque<>();
        try {
            while (!over.get()) {
                Socket socket = new Socket();
                open.add(socket);
                socket.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.3"), 0));
                socket.connect(server);
                came.incrementAndGet();
                if (open.size() > 4 * MAX_CONNECTIONS) {
                    open.remove().close();
                }
            }
        } catch (IOException broken) {
            throw new AssertionError(broken);
        } finally {
            open.forEach(UnauthenticatedFloodTest::close);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException broken) {
            throw new AssertionError(broken);
        }
    }
}
