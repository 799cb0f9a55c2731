package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.FuzzRunner;
import io.kvcache.server.net.NettyLeakCheck;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Random and mutated frames: no bug is hit, no buffer and no slot is left behind, and every connection that ends has a
/// reason. [FuzzRunner] says how to send more of them.
@Timeout(value = 30, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class RespFuzzTest {

    @Test
    void givenFramesThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        FuzzRunner run = new FuzzRunner("RESP");
        try (NettyLeakCheck _ = new NettyLeakCheck();
                EmbeddedRespServer resp = new EmbeddedRespServer()) {
            int sent = run.run(20, resp::connect, () -> RespRequestGenerator.randomFrame(run.random()));

            FuzzRunner.requireCleanCloses(resp.connectionRegistry());
            assertThat(resp.connectionRegistry().closedCount(CloseReason.PROTOCOL_ERROR))
                    .isPositive();
            assertThat(resp.protocol().commandCount()).isGreaterThan(sent / 4);
            assertThat(resp.connectionRegistry().openCount()).isEqualTo(1);
            assertThat(resp.embeddedConnection().ask("PING\r\n")).isEqualTo("+PONG\r\n");
            resp.test().time().advance(Duration.ofMinutes(1));
            resp.test().keyspace().tick();
            resp.test().keyspace().clear();
            assertThat(resp.test().cache().stats().host().heldBytes()).isZero();
            assertThat(resp.test().cache().stats().openTables()).isZero();
        }
    }
}
