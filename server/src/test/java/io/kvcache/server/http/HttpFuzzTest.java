package io.kvcache.server.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.access.OpenListener;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.FuzzRunner;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyLeakCheck;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Random and mutated requests: no bug is hit, no buffer and no slot is left behind. [FuzzRunner] says how to send
/// more of them.
@Timeout(value = 30, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class HttpFuzzTest {

    @Test
    void givenRequestsThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        FuzzRunner run = new FuzzRunner("HTTP");
        try (NettyLeakCheck _ = new NettyLeakCheck();
                TestKeyspace test = TestKeyspace.small()) {
            ConnectionRegistry connectionRegistry = EmbeddedConnection.registry(NetLimits.defaults(), test.time());
            HttpProtocol protocol = new HttpProtocol(TestHttpConfig.of(
                    OpenListener.auth(test.time()),
                    test.keyspace(),
                    Map.of("/page", TextEndpoint.of("text/plain", () -> "page")),
                    List.of(new HintEndpoint(_ -> KeyspaceRouter.of(test.keyspace()))),
                    Set.of()));
            int sent = run.run(
                    4,
                    () -> new EmbeddedConnection(protocol, connectionRegistry),
                    () -> HttpRequestGenerator.randomFrame(run.random()));

            FuzzRunner.requireCleanCloses(connectionRegistry);
            assertThat(protocol.requestCount()).isGreaterThan(sent / 4);
            assertThat(connectionRegistry.openCount()).isZero();
            try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(protocol, connectionRegistry)) {
                assertThat(embeddedConnection.ask("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"))
                        .endsWith("page");
            }
            test.time().advance(Duration.ofMinutes(1));
            test.keyspace().tick();
            test.keyspace().clear();
            assertThat(test.cache().stats().host().heldBytes()).isZero();
            assertThat(test.cache().stats().openTables()).isZero();
        }
    }
}
