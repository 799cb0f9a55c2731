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
    private final ByteBudget leaving = new ByteBudget(300);
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
                            new BlockEndpoint.TransferBudgets(_ -> arriving, _ -> leaving))),
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

    private static String post(String path, int more, String line) {
        return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + (line.length() + more) + "\r\n\r\n"
                + line;
    }

    @Test
    void givenSeveralBlocksOnTheirWay_whenOneHasCome_thenOnlyTheNextIsOnItsWay() {
        String line = "{\"namespace\":\"m\",\"keys\":[\"00\",\"01\",\"02\"]}\n";
        assertThat(first.ask(post("/v1/blocks/put", 3 * 128, line))).isEmpty();
        assertThat(arriving.usedBytes()).isZero();
        assertThat(first.ask(HALF + HALF + HALF)).isEmpty();
        assertThat(arriving.usedBytes()).isEqualTo(128);
        String second = "{\"namespace\":\"m\",\"keys\":[\"00\",\"aa\"]}\n";
        assertThat(this.second.ask(post("/v1/blocks/put", 2 * 128, second) + HALF.repeat(4)))
                .startsWith("HTTP/1.1 503 ")
                .containsIgnoringCase("retry-after: 1\r\n")
                .contains("limits.in_flight lets this tenant have 200 bytes", "\"blocks\":1,\"stored\":0");
        assertThat(first.ask(HALF + HALF + HALF)).startsWith("HTTP/1.1 200 ").contains("\"stored\":3");
        assertThat(arriving.usedBytes()).isZero();
    }

    @Test
    void givenABlockBeingWritten_whenPutAmongOthers_thenTheReplySaysThatItIsNotComplete() {
        assertThat(first.ask(put("/v1/blocks/m/00", 128) + HALF)).isEmpty();
        String line = "{\"namespace\":\"m\",\"keys\":[\"00\"]}\n";
        assertThat(second.ask(post("/v1/blocks/put", 128, line) + HALF + HALF))
                .startsWith("HTTP/1.1 202 ")
                .contains("\"blocks\":1", "\"stored\":0");
        assertThat(first.ask(HALF)).startsWith("HTTP/1.1 201 ");
    }

    @Test
    void givenSeveralBlocksOnTheirWay_whenTheirConnectionEnds_thenNoneIs() {
        String line = "{\"namespace\":\"m\",\"keys\":[\"00\",\"01\"]}\n";
        assertThat(first.ask(post("/v1/blocks/put", 2 * 128, line) + HALF.repeat(3)))
                .isEmpty();
        assertThat(arriving.usedBytes()).isEqualTo(128);
        first.close();
        assertThat(arriving.usedBytes()).isZero();
        assertThat(second.ask(post("/v1/blocks/get", 0, line))).contains("KVCache-Blocks: 1");
    }

    @Test
    void givenBytesLeaving_whenSeveralBlocksAreRead_thenTheLimitCountsAllOfThem() {
        String line = "{\"namespace\":\"m\",\"keys\":[\"00\",\"01\"]}\n";
        assertThat(first.ask(post("/v1/blocks/put", 2 * 128, line) + HALF.repeat(4)))
                .startsWith("HTTP/1.1 200 ");
        assertThat(leaving.tryAcquire(100)).isTrue();
        assertThat(first.ask(post("/v1/blocks/get", 0, line)))
                .startsWith("HTTP/1.1 503 ")
                .contains("limits.sending lets this tenant have 300 bytes");
        leaving.release(100);
        assertThat(first.ask(post("/v1/blocks/get", 0, line)))
                .startsWith("HTTP/1.1 200 ")
                .contains("KVCache-Blocks: 2", "content-length: 256")
                .endsWith("\r\n\r\n" + HALF.repeat(4));
        assertThat(leaving.usedBytes()).isZero();
    }
}
