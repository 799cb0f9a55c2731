package io.kvcache.server.client;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.net.ClientTlsContexts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
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

    @Test
    void givenAServerThatStopsWithinAPage_whenAsked_thenTheTimeoutIsSaid() throws Exception {
        try (ServerSocket still = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                HttpApiClient client = new HttpApiClient(
                        ClientConfig.open("127.0.0.1", still.getLocalPort()), Duration.ofMillis(500))) {
            Thread server = Thread.ofVirtual().start(() -> {
                try (Socket accepted = still.accept()) {
                    accepted.getOutputStream()
                            .write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".getBytes(US_ASCII));
                    accepted.getInputStream().readAllBytes();
                } catch (IOException ended) {
                    throw new UncheckedIOException(ended);
                }
            });
            assertThatThrownBy(() -> client.get("/v1/cluster")).hasMessageContaining("does not answer within 500 ms");
            server.join();
        }
    }
}
