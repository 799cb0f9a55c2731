package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.config.TenantConfig.ValueKind;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TransportConfig.AeronConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A real server's endpoint over Aeron, beside the one over TCP and alone.
@Timeout(300)
@Tag("slow")
final class AeronEndpointServerTest {

    private static final String SECRET = RemoteEndpointTest.BLUE;

    @TempDir
    private Path folder;

    private TransportConfig config(String listen, String aeron, boolean guarded) throws IOException {
        String secrets = guarded
                ? RemoteEndpointTest.secrets(folder.resolve("secrets"), SECRET).toString()
                : null;
        return new TransportConfig(
                listen,
                secrets,
                false,
                64,
                Duration.ofSeconds(60),
                "off",
                new AeronConfig(aeron.replace("FOLDER", folder.resolve("aeron").toString())));
    }

    private static RemoteKvCacheBuilder client(TestServer server) {
        return RemoteTestBlocks.clientBuilder(
                Objects.requireNonNull(server.server().aeronAddress()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"aeron:ipc?dir=FOLDER", "aeron:udp?endpoint=127.0.0.1:0"})
    void givenASecret_whenConnectedOverAeron_thenOnlyWithItAndWhatIsPutIsFoundOverTcp(String aeron) throws Exception {
        try (TestServer server =
                TestServer.start(RemoteEndpointTest.nobodyInParticular(), config("127.0.0.1:0", aeron, true))) {
            RemoteTestBlocks.assertRefused(client(server));
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 3);
            int port = Objects.requireNonNull(server.server().remoteAddress()).getPort();
            try (RemoteKvCache one = client(server).secret(SECRET).connect();
                    RemoteKvCache other = RemoteTestBlocks.clientBuilder("127.0.0.1:" + port)
                            .secret(SECRET)
                            .connect()) {
                one.register(RemoteTestBlocks.SPACE);
                other.register(RemoteTestBlocks.SPACE);
                RemoteTestBlocks.put(one, chain);
                assertThat(RemoteTestBlocks.verifiedBlocks(one, chain)).isEqualTo(3);
                assertThat(RemoteTestBlocks.verifiedBlocks(other, chain)).isEqualTo(3);
                try (HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
                    assertThat(HttpTestClient.json(httpTestClient.get("/v1/stats"))
                                    .get("transport")
                                    .get("sessions")
                                    .intValue())
                            .as("of both ways together")
                            .isEqualTo(2);
                }
            }
        }
        assertThat(folder.resolve("aeron/driver")).doesNotExist();
    }

    @Test
    void givenTenants_whenOneComesOverAeron_thenHeHasNamespacesOfHisNameOnly() throws Exception {
        try (TestServer server = TestServer.start(
                        RemoteEndpointTest.tenants(TenantConfig.defaultTenant(), blue()),
                        config("", "aeron:ipc?dir=FOLDER", false));
                RemoteKvCache blue =
                        client(server).tenant("blue").secret(SECRET).connect()) {
            assertThat(server.server().remoteAddress()).isNull();
            Namespace own = RemoteTestBlocks.SPACE.toBuilder().tenant("blue").build();
            blue.register(own);
            RemoteTestBlocks.put(blue, RemoteTestBlocks.chain(own, 2));
            assertThat(RemoteTestBlocks.verifiedBlocks(blue, RemoteTestBlocks.chain(own, 2)))
                    .isEqualTo(2);
            assertThatIllegalArgumentException().isThrownBy(() -> blue.register(RemoteTestBlocks.SPACE));
            RemoteTestBlocks.assertRefused(client(server).tenant("default").secret(SECRET));
        }
    }

    private TenantConfig blue() throws IOException {
        String secrets =
                RemoteEndpointTest.secrets(folder.resolve("blue"), SECRET).toString();
        return new TenantConfig(
                "blue", "blue", "blue", null, null, 0, 1, secrets, KeyOwnershipConfig.NONE, ValueKind.MUTABLE, false);
    }
}
