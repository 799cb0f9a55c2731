package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.net.TcpConnector;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Answers that do not come in time while their session goes on.
@Timeout(180)
final class LostRepliesTest {

    private static final Namespace OBJECTS = Namespace.objects("objects", "tenant");
    private static final byte[] KEY = {1, 2, 3};

    /// Loses the first reply of one type on connections that stay.
    private record LossyConnector(Connector connector, MessageType type, AtomicBoolean lost) implements Connector {

        @Override
        public FrameConnection connect(FrameHandler handler, long timeoutNanos) throws IOException {
            return connector.connect(new DroppingHandler(handler, type, lost), timeoutNanos);
        }
    }

    private record DroppingHandler(FrameHandler handler, MessageType type, AtomicBoolean lost) implements FrameHandler {

        @Override
        public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
            if (header.type() != type.code() || !lost.compareAndSet(false, true)) {
                handler.onMessage(header, body);
            }
        }

        @Override
        public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
            return handler.onPayload(header, body);
        }

        @Override
        public void onClosed(DisconnectReason reason) {
            handler.onClosed(reason);
        }
    }

    /// What is done with a cache of which one answer gets lost.
    private interface Use {
        void of(RemoteKvCache cache, AtomicBoolean lost) throws Exception;
    }

    /// Has the first answer to such a request lost on its way.
    private static void losing(MessageType type, Use use) throws Exception {
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .build();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS)) {
            AtomicBoolean lost = new AtomicBoolean();
            Connector network = new TcpConnector("127.0.0.1", endpoint.address().getPort());
            try (RemoteKvCache cache = new RemoteKvCacheBuilder(new LossyConnector(network, type, lost))
                    .requestTimeout(Duration.ofSeconds(5))
                    .connect()) {
                use.of(cache, lost);
            }
        }
    }

    @Test
    @Tag("slow")
    void givenAnObjectWhoseAnswerIsLost_whenFetched_thenItIsAMissAndTheSessionGoesOn() throws Exception {
        losing(MessageType.GET_OBJECT, (cache, lost) -> {
            cache.register(OBJECTS);
            TestBlocks.putObject(cache, OBJECTS, KEY, MemorySegment.ofArray(new byte[1000]));
            assertThat(fetched(cache)).isFalse();
            assertThat(lost).isTrue();
            TestBlocks.await("it is found", () -> fetched(cache));
            assertThat(cache.remoteStats().sessions()).isEqualTo(1);
        });
    }

    private static boolean fetched(RemoteKvCache cache) {
        try (ObjectView view = cache.fetchObject(OBJECTS, KEY, Duration.ofNanos(1), Runnable::run)
                .toCompletableFuture()
                .get(60, TimeUnit.SECONDS)) {
            return view != null;
        } catch (InterruptedException | ExecutionException | TimeoutException failed) {
            throw new AssertionError(failed);
        }
    }

    @Test
    @Tag("slow")
    void givenARegistrationWhoseAnswerIsLost_whenTheNamespaceIsUsed_thenItIsRegisteredAgain() throws Exception {
        losing(MessageType.REGISTER, (cache, lost) -> {
            cache.register(TestBlocks.SPACE);
            assertThat(lost).isTrue();

            BlockChain chain = TestBlocks.stored(cache, 1, 2);

            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(2);
            assertThat(cache.remoteStats().sessions()).isEqualTo(1);
        });
    }
}
