package io.kvcache.server.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.block.BlockEndpoint;
import io.kvcache.server.block.BlockQuotaTrackers;
import io.kvcache.server.block.NamespaceEndpoint;
import io.kvcache.server.block.TenantNamespaceRegistry;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.FuzzRunner;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyLeakCheck;
import io.kvcache.server.quota.ByteBudget;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Random and mutated requests: no bug is hit, no buffer and no slot is left behind. [FuzzRunner] says how to send more
/// of them.
@Timeout(value = 30, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
final class HttpFuzzTest {

    @Test
    void givenRequestsThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        FuzzRunner run = new FuzzRunner("HTTP");
        try (NettyLeakCheck _ = new NettyLeakCheck();
                TestKeyspace test = TestKeyspace.small()) {
            ConnectionRegistry connectionRegistry = new ConnectionRegistry(NetLimits.defaults(), test.time());
            ByteBudget arriving = ByteBudget.unlimited();
            TenantNamespaceRegistry namespaces = new TenantNamespaceRegistry(test.cache());
            HttpProtocol protocol = new HttpProtocol(new HttpConfig(
                    ListenerAuth.withoutAuth(PasswordAuthenticator.withoutPasswords(test.time())),
                    Map.of("default", test.keyspace()),
                    Map.of("/page", TextEndpoint.of("text/plain", () -> "page")),
                    List.of(
                            new NamespaceEndpoint(namespaces),
                            new BlockEndpoint(
                                    test.cache(),
                                    namespaces,
                                    Duration.ZERO,
                                    BlockQuotaTrackers.withoutQuotas(test.cache()),
                                    new BlockEndpoint.TransferBudgets(_ -> arriving, _ -> ByteBudget.unlimited()))),
                    Set.of()));
            register(protocol, connectionRegistry);
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
            assertThat(arriving.usedBytes()).as("of blocks, still on their way").isZero();
            test.time().advance(Duration.ofMinutes(1));
            test.keyspace().tick();
            test.keyspace().clear();
            test.cache().stats().namespaces().forEach(each -> test.cache().drop(each.namespace()));
            assertThat(test.cache().stats().host().heldBytes()).isZero();
            assertThat(test.cache().stats().openTables()).isZero();
        }
    }

    /// A namespace whose blocks have 16 bytes.
    private static void register(HttpProtocol protocol, ConnectionRegistry connectionRegistry) {
        String shape = "{\"shape\":{\"layers\":1,\"planes\":1,\"kvHeads\":1,\"headDim\":1,"
                + "\"blockTokens\":16,\"dtype\":\"int8\"}}";
        try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(protocol, connectionRegistry)) {
            embeddedConnection.send(("PUT /v1/namespaces/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                            + shape.length() + "\r\n\r\n" + shape)
                    .getBytes(StandardCharsets.US_ASCII));
            assertThat(new String(embeddedConnection.bytes(), StandardCharsets.US_ASCII))
                    .startsWith("HTTP/1.1 201 ");
        }
    }
}
