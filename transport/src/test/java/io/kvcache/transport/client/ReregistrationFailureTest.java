package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A server that cannot take a namespace just when the client has come back to it.
@Timeout(180)
final class ReregistrationFailureTest {

    /// Registrations that were answered.
    private final AtomicInteger registrations = new AtomicInteger();

    private InProcessServer.MutatedFrame refused(byte[] frame, Status status) {
        try {
            FrameHeader header = FrameHeader.read(ByteBuffer.wrap(frame));
            if (header.type() == MessageType.REGISTER.code() && registrations.incrementAndGet() == 2) {
                byte[] refusal = RecordingSink.bytes(
                        BodyWriter.errorReply(header.type(), header.request(), status, "not just now"));
                return new InProcessServer.MutatedFrame(refusal, false);
            }
            return new InProcessServer.MutatedFrame(frame, false);
        } catch (ProtocolException impossible) {
            throw new AssertionError(impossible);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"BUSY", "FAILED"})
    void givenARegistrationThatIsRefusedForNow_whenTheNamespaceIsUsed_thenItIsRegisteredAgain(Status status) {
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .build();
                Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime)) {
            InProcessServer server = new InProcessServer(endpoint, (wire, frame) -> refused(frame, status));
            try (RemoteKvCache cache = new RemoteKvCacheBuilder(server)
                    .requestTimeout(Duration.ofSeconds(60))
                    .connect()) {
                cache.register(TestBlocks.SPACE);
                BlockChain chain = TestBlocks.stored(cache, 1, 2);
                server.breakAll();
                TestBlocks.await("another session", () -> cache.remoteStats().sessions() == 2);

                assertThat(TestBlocks.verified(cache, chain)).isEqualTo(2);
                assertThat(registrations).hasValue(3);
            }
        }
    }
}
