package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

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
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A server that has all the snapshots it may, for a while.
@Timeout(180)
final class BusySnapshotTest {

    private final AtomicInteger answers = new AtomicInteger();

    private InProcessServer.MutatedFrame busy(byte[] frame) {
        try {
            FrameHeader header = FrameHeader.read(ByteBuffer.wrap(frame));
            if (header.type() == MessageType.SNAPSHOT.code() && answers.incrementAndGet() <= 2) {
                byte[] refusal = RecordingSink.bytes(
                        BodyWriter.errorReply(header.type(), header.request(), Status.BUSY, "not just now"));
                return new InProcessServer.MutatedFrame(refusal, false);
            }
            return new InProcessServer.MutatedFrame(frame, false);
        } catch (ProtocolException impossible) {
            throw new AssertionError(impossible);
        }
    }

    @Test
    void givenSnapshotsOfOthers_whenOneIsWanted_thenItIsAskedForUntilItComes() {
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .build();
                Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime)) {
            InProcessServer server = new InProcessServer(endpoint, (wire, frame) -> busy(frame));
            try (RemoteKvCache cache = new RemoteKvCacheBuilder(server)
                    .requestTimeout(TestBlocks.PATIENCE)
                    .connect()) {
                cache.register(TestBlocks.SPACE);
                TestBlocks.stored(cache, 1, 2);
                assertThat(cache.events().snapshot().stored()).hasSize(2);
                assertThat(answers).hasValue(3);
            }
        }
    }
}
