package io.kvcache.server.lm;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.FuzzRun;
import io.kvcache.server.net.LeakWatch;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.Wire;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Random and mutated frames: no bug is hit, no buffer and no slot is left behind. [FuzzRun] says how to send more of
/// them.
@Timeout(value = 30, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class LmFuzzTest {

    @Test
    void givenFramesThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        FuzzRun run = new FuzzRun("lm");
        LmTestClient[] client = new LmTestClient[1];
        try (LeakWatch _ = new LeakWatch();
                TestKeyspace test = TestKeyspace.small()) {
            LmProtocol protocol = new LmProtocol(KeyspaceRouter.of(test.keyspace()), null);
            Connections connectionRegistry = new Connections(NetLimits.defaults(), test.time());
            int sent = run.talk(
                    20,
                    () -> {
                        client[0] = LmRequestGenerator.client(run.random());
                        return new Wire(protocol, connectionRegistry);
                    },
                    () -> LmRequestGenerator.randomFrame(client[0], run.random()));

            FuzzRun.requireGoodEnds(connectionRegistry);
            assertThat(connectionRegistry.closedCount(CloseReason.PROTOCOL_ERROR))
                    .isPositive();
            assertThat(protocol.requestCount()).isGreaterThan(sent / 4);
            assertThat(test.keyspace().stats().writes().stored()).isPositive();
            assertThat(connectionRegistry.openCount()).isZero();
            try (Wire embeddedConnection = new Wire(protocol, connectionRegistry)) {
                assertThat(embeddedConnection
                                .send(client[0].ask(LmTestClient.HEALTH, ""))
                                .bytes())
                        .isEqualTo(client[0].success());
            }
            test.time().advance(Duration.ofMinutes(1));
            test.keyspace().tick();
            test.keyspace().clear();
            assertThat(test.cache().stats().host().heldBytes()).isZero();
            assertThat(test.cache().stats().openTables()).isZero();
        }
    }
}
