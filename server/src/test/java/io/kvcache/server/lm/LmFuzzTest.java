package io.kvcache.server.lm;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.FuzzRunner;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyLeakCheck;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Random and mutated frames: no bug is hit, no buffer and no slot is left behind. [FuzzRunner] says how to send
/// more of them.
@Timeout(value = 30, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class LmFuzzTest {

    @Test
    void givenFramesThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        FuzzRunner run = new FuzzRunner("lm");
        try (NettyLeakCheck _ = new NettyLeakCheck();
                TestKeyspace test = TestKeyspace.small()) {
            LmProtocol protocol = new LmProtocol(KeyspaceRouter.of(test.keyspace()));
            ConnectionRegistry connectionRegistry = EmbeddedConnection.registry(NetLimits.defaults(), test.time());
            int sent = run.run(
                    20,
                    () -> new EmbeddedConnection(protocol, connectionRegistry),
                    () -> LmRequestGenerator.randomFrame(run.random()));

            FuzzRunner.requireCleanCloses(connectionRegistry);
            assertThat(connectionRegistry.closedCount(CloseReason.PROTOCOL_ERROR))
                    .isPositive();
            assertThat(protocol.requestCount()).isGreaterThan(sent / 4);
            assertThat(test.keyspace().stats().writes().stored()).isPositive();
            assertThat(connectionRegistry.openCount()).isZero();
            try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(protocol, connectionRegistry)) {
                assertThat(embeddedConnection
                                .send(LmRequestGenerator.CLIENT.ask(LmTestClient.HEALTH, ""))
                                .bytes())
                        .isEqualTo(LmRequestGenerator.CLIENT.success());
            }
            test.time().advance(Duration.ofMinutes(1));
            test.keyspace().tick();
            test.keyspace().clear();
            assertThat(test.cache().stats().host().heldBytes()).isZero();
            assertThat(test.cache().stats().openTables()).isZero();
        }
    }
}
