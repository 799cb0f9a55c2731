package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.server.http.HttpRequestGenerator;
import io.kvcache.server.lm.LmRequestGenerator;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.FuzzRunner;
import io.kvcache.server.net.NettyLeakCheck;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.resp.RespRequestGenerator;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Frames of every protocol, whole and mutated, at a port that tells them by their first bytes. [FuzzRunner] says how
/// to send more of them.
@Timeout(value = 30, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class ProtocolSnifferFuzzTest {

    private static final int CLIENTS = Repetitions.usualOrFull(600, 3_000);
    private static final List<ProtocolKind> KINDS = List.of(ProtocolKind.RESP, ProtocolKind.LM, ProtocolKind.HTTP);

    @Test
    void givenFramesOfAllProtocolsMixed_whenSent_thenNothingBreaksAndNothingIsLeft() {
        FuzzRunner run = new FuzzRunner("all protocols");
        Random random = run.random();
        try (NettyLeakCheck _ = new NettyLeakCheck();
                ProtocolTestHarness port = new ProtocolTestHarness()) {
            int sent = run.run(20, port::connect, () -> switch (random.nextInt(3)) {
                case 0 -> RespRequestGenerator.randomFrame(random);
                case 1 -> HttpRequestGenerator.randomFrame(random);
                default -> LmRequestGenerator.randomFrame(random);
            });

            FuzzRunner.requireCleanCloses(port.connectionRegistry());
            assertThat(port.connectionRegistry().closedCount(CloseReason.UNKNOWN_PROTOCOL))
                    .isPositive();
            for (ProtocolKind kind : KINDS) {
                assertThat(port.requests(kind)).as("%s of %d", kind, sent).isGreaterThan(sent / 40);
            }
            port.test().time().advance(Duration.ofMinutes(1));
            port.test().keyspace().tick();
            port.test().keyspace().clear();
            assertThat(port.test().cache().stats().host().heldBytes()).isZero();
            assertThat(port.test().cache().stats().openTables()).isZero();
        }
    }

    @Test
    void givenAFrameOfOneProtocol_whenItComesInThreeParts_thenThatProtocolGetsIt() {
        FuzzRunner run = new FuzzRunner("a first frame");
        Random random = run.random();
        try (ProtocolTestHarness port = new ProtocolTestHarness()) {
            for (int i = 0; i < CLIENTS; i++) {
                ProtocolKind kind = KINDS.get(i % KINDS.size());
                byte[] frame = switch (kind) {
                    case RESP -> RespRequestGenerator.command(random);
                    case LM -> LmRequestGenerator.request(random);
                    case HTTP -> HttpRequestGenerator.request(random);
                };
                int one = random.nextInt(Math.min(frame.length, 50));
                int other = one + random.nextInt(frame.length - one);
                long before = port.requests(kind);
                try (EmbeddedConnection embeddedConnection = port.connect()) {
                    embeddedConnection
                            .send(Arrays.copyOf(frame, one))
                            .send(Arrays.copyOfRange(frame, one, other))
                            .send(Arrays.copyOfRange(frame, other, frame.length));
                    assertThat(port.requests(kind))
                            .as("%s, cut at %d and %d", kind, one, other)
                            .isEqualTo(before + 1);
                }
            }
        }
    }
}
