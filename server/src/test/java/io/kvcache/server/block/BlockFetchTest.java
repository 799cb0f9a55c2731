package io.kvcache.server.block;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.quota.ByteBudget;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks that come in, where not more than one may at a time.
final class BlockFetchTest {

    private static final String SHAPE =
            "{\"shape\":{\"layers\":1,\"kvHeads\":1,\"headDim\":8,\"blockTokens\":4,\"dtype\":\"bf16\"}}";
    private static final String HALF = "x".repeat(64);

    private final TestKeyspace test = TestKeyspace.small();
    private final ByteBudget arriving = new ByteBudget(200);
    private final ConnectionRegistry connectionRegistry = new ConnectionRegistry(NetLimits.defaults(), test.time());
    private final TenantNamespaceRegistry namespaces = new TenantNamespaceRegistry(test.cache());
    private final HttpProtocol protocol = new HttpProtocol(new HttpConfig(
            ListenerAuth.withoutAuth(PasswordAuthenticator.withoutPasswords(test.time())),
            Map.of("default", test.keyspace()),
            Map.of(),
            List.of(
                    new NamespaceEndpoint(namespaces),
                    new BlockEndpoint(
                            test.cache(),
                            namespaces,
                            Duration.ZERO,
                            BlockQuotaTrackers.withoutQuotas(test.cache()),
                            new BlockEndpoint.TransferBudgets(_ -> arriving, _ -> ByteBudget.unlimited()))),
            Set.of("*")));
    private final EmbeddedConnection first = new EmbeddedConnection(protocol, connectionRegistry);
    private final EmbeddedConnection second = new EmbeddedConnection(protocol, connectionRegistry);

    @BeforeEach
    void register() {
        assertThat(first.ask(put("/v1/namespaces/m", SHAPE.length()) + SHAPE)).startsWith("HTTP/1.1 20");
    }

    @AfterEach
    void close() {
        first.close();
        second.close();
        assertThat(arriving.usedBytes()).isZero();
        test.close();
    }

    private static String put(String path, int bytes) {
        return "PUT " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + bytes + "\r\n\r\n";
    }

    @Test
    void givenABlockOnItsWay_whenAnotherComes_thenItIsToldToComeLater() {
        assertThat(first.ask(put("/v1/blocks/m/00", 128) + HALF)).isEmpty();
        assertThat(arriving.usedBytes()).isEqualTo(128);
        assertThat(second.ask(put("/v1/blocks/m/01", 128) + HALF + HALF))
                .startsWith("HTTP/1.1 503 ")
                .containsIgnoringCase("retry-after: 1\r\n")
                .contains("limits.in_flight lets this tenant have 200 bytes on their way at one time, and 128 are");
        assertThat(first.ask(HALF)).startsWith("HTTP/1.1 201 ");
        assertThat(arriving.usedBytes()).isZero();
        assertThat(second.ask(put("/v1/blocks/m/01", 128) + HALF + HALF)).startsWith("HTTP/1.1 201 ");
    }

    @Test
    void givenABlockOnItsWay_whenItsConnectionEnds_thenItIsOnItsWayNoMore() {
        assertThat(first.ask(put("/v1/blocks/m/00", 128) + HALF)).isEmpty();
        first.close();
        assertThat(arriving.usedBytes()).isZero();
    }
}
