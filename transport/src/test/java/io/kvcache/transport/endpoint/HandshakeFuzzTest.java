package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Ten thousand connections of strangers who do not say who they are, or nearly do: nobody gets in, and nothing
/// is left.
///
/// `-Dkvcache.transport.seed=S` repeats a run.
final class HandshakeFuzzTest {

    private static final int CONNECTIONS = 10_000;
    private static final long SEED = Long.getLong("kvcache.transport.seed", 20_261_122);
    private static final EndpointOptions GUARDED =
            EndpointOptions.DEFAULTS.withAuth(EndpointAuthentication.secret("a secret of some length"));

    private static final List<MessageType> TYPES = List.of(MessageType.values());

    private final SplittableRandom random = new SplittableRandom(SEED);
    private final AtomicLong nanos = new AtomicLong(1);

    @Test
    @Tag("slow")
    void givenStrangers_whenTheySayAnything_thenNobodyGetsInAndNothingIsLeft() {
        try (TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(32 << 20)
                        .failOnLeak(true)
                        .prefaultInBackground(false)
                        .build();
                Endpoint endpoint = new Endpoint(store, GUARDED, nanos::get)) {
            int violations = 0;
            int refused = 0;
            for (int i = 0; i < CONNECTIONS; i++) {
                TestClient testClient = new TestClient(endpoint);
                DisconnectReason end = DisconnectReason.PEER_CLOSED;
                try {
                    refused += judge(testClient.request(first()));
                    refused += judge(testClient.request(second()));
                    refused += judge(testClient.request(second()));
                } catch (ProtocolException expected) {
                    assertThat(expected).as("seed %d", SEED).hasMessageContaining("allowed");
                    violations++;
                    end = DisconnectReason.MALFORMED;
                }
                testClient.end(end);
                nanos.addAndGet(TimeUnit.MINUTES.toNanos(2)); // who tries too often is not looked at for one
            }
            assertThat(violations).as("seed %d", SEED).isPositive();
            assertThat(refused).as("seed %d", SEED).isPositive();
            assertThat(endpoint.stats().connections()).isZero();
            assertThat(store.stats().openTables()).isZero();
        }
    }

    /// Answers how many refusals there are; none may be a failure, and nobody is let in.
    private static int judge(List<RecordingSink.ReceivedFrame> replies) {
        int refused = 0;
        for (RecordingSink.ReceivedFrame reply : replies) {
            Status status = reply.header().status();
            assertThat(status).as("a bug, seed %d", SEED).isNotEqualTo(Status.FAILED);
            if (status == Status.OK) {
                assertThat(reply.header().type())
                        .as("what a stranger is told, seed %d", SEED)
                        .isEqualTo(MessageType.HELLO.code());
            } else {
                refused++;
            }
        }
        return refused;
    }

    private byte[] first() {
        Hello hello = new Hello(
                1,
                random.nextInt(4) == 0 ? random.nextInt(3) : 0,
                0,
                Secret.random(Hello.NONCE_BYTES),
                Secret.zeros(Hello.TICKET_BYTES),
                random.nextInt(),
                random.nextBoolean() ? "" : "someone",
                random.nextBoolean() ? "" : "engine 1.0");
        byte[] right = RecordingSink.bytes(hello.frame(1, 0));
        return random.nextInt(3) == 0 ? right : spoilt(right);
    }

    private byte[] second() {
        byte[] proof = new byte[32];
        random.nextBytes(proof);
        MessageType type = random.nextInt(3) == 0 ? TYPES.get(random.nextInt(TYPES.size())) : MessageType.AUTH;
        byte[] right = RecordingSink.bytes(new BodyWriter().bytes(proof).request(type, 2, 0));
        return random.nextInt(3) == 0 ? right : spoilt(right);
    }

    private byte[] spoilt(byte[] frame) {
        byte[] changed = frame.clone();
        switch (random.nextInt(5)) {
            case 0 -> changed[random.nextInt(changed.length)] ^= (byte) (1 << random.nextInt(8));
            case 1 -> changed[4] = (byte) random.nextInt(60);
            case 2 -> changed[16 + random.nextInt(8)] = (byte) random.nextInt();
            case 3 -> changed = Arrays.copyOf(changed, random.nextInt(changed.length));
            default -> random.nextBytes(changed);
        }
        return changed;
    }
}
