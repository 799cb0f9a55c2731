package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TransportConfig.UcxConfig;
import io.kvcache.transport.client.RemoteKvCache;
import java.nio.file.Path;
import java.util.Objects;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A real server whose store is read over UCX, or that has no UCX to open.
@EnabledOnOs(OS.LINUX)
@Timeout(300)
final class UcxEndpointServerTest {

    private final String name = "kvcache-test-" + UUID.randomUUID();

    private TransportConfig config(String ucx) {
        TransportConfig usual = TestServer.listeningOn("127.0.0.1:0");
        return new TransportConfig(
                usual.listen(),
                null,
                false,
                usual.connections(),
                usual.lease(),
                name,
                usual.aeron(),
                null,
                new UcxConfig(ucx));
    }

    private static RemoteKvCache connect(TestServer server, String transports) {
        int port = Objects.requireNonNull(server.server().remoteAddress()).getPort();
        RemoteKvCache cache = RemoteTestBlocks.clientBuilder("ucx:127.0.0.1:" + port + "?tls=" + transports)
                .connect();
        cache.register(RemoteTestBlocks.SPACE);
        return cache;
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp", "shm"})
    @EnabledIf(value = "io.kvcache.transport.ucx.UcxMemory#possible", disabledReason = "libucx0 is not installed")
    void givenUcx_whenBlocksAreRead_thenTheyComeOneSidedAndNothingIsLeftAtTheEnd(String transports) throws Exception {
        TestRequirements.assumeSharedMemory(256L << 20);
        try (TestServer server = TestServer.start(RemoteEndpointTest.nobodyInParticular(), config(transports));
                RemoteKvCache cache = connect(server, transports)) {
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 5);
            RemoteTestBlocks.put(cache, chain);
            assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain)).isEqualTo(5);
            assertThat(cache.remoteStats().fetched()).isEqualTo(5);
        }
        assertThat(Path.of("/dev/shm", name)).doesNotExist();
    }

    @Test
    void givenATransportThatUcxDoesNotHave_whenStarted_thenItServesWithoutIt() throws Exception {
        TestRequirements.assumeSharedMemory(256L << 20);
        try (TestServer server =
                        TestServer.start(RemoteEndpointTest.nobodyInParticular(), config("no_such_transport"));
                RemoteKvCache cache = connect(server, "tcp")) {
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 5);
            RemoteTestBlocks.put(cache, chain);
            assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain)).isEqualTo(5);
            assertThat(cache.remoteStats().fetched()).isZero();
        }
    }
}
