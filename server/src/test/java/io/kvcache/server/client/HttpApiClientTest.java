package io.kvcache.server.client;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.client.ClientTlsContexts;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// What a command says of a server that does not answer.
final class HttpApiClientTest {

    private static void assertTimeout(@Nullable SSLContext tls) throws IOException {
        // The system accepts connections to a process that stands still.
        try (ServerSocket still = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                HttpApiClient client = new HttpApiClient(
                        new ClientConfig("127.0.0.1", still.getLocalPort(), null, tls), Duration.ofMillis(200))) {
            assertThatThrownBy(() -> client.get("/v1/cluster"))
                    .hasMessage("127.0.0.1:" + still.getLocalPort() + " does not answer within 200 ms; its process may"
                            + " stand still (SIGSTOP, swapping) or be overloaded, or the host is not reachable");
        }
    }

    @Test
    void givenAServerThatStandsStill_whenAsked_thenTheTimeoutIsSaid() throws Exception {
        assertTimeout(null);
    }

    @Test
    void givenAServerOfTlsThatStandsStill_whenAsked_thenTheTimeoutIsSaid() throws Exception {
        assertTimeout(ClientTlsContexts.systemDefault());
    }
}
