package io.kvcache.server.client;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.net.ClientTlsContexts;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What a command says of a server that stands still, wherever it stops.
@Timeout(60)
final class RespClientTest {

    private static final Duration TIMEOUT = Duration.ofMillis(200);
    private static final String SAID = "does not answer within 200 ms; its process may stand still";

    private ServerSocket still = unbound();

    private static ServerSocket unbound() {
        try {
            return new ServerSocket();
        } catch (IOException none) {
            throw new AssertionError(none);
        }
    }

    @BeforeEach
    void listen() throws IOException {
        still = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    }

    @AfterEach
    void close() throws IOException {
        still.close();
    }

    private ClientConfig config() {
        return ClientConfig.open("127.0.0.1", still.getLocalPort());
    }

    @Test
    void givenAServerThatAnswersNothing_whenAsked_thenTheTimeoutIsSaid() throws Exception {
        try (RespClient client = new RespClient(config(), TIMEOUT)) {
            assertThatThrownBy(() -> client.call("PING")).hasMessageContaining(SAID);
        }
    }

    @Test
    void givenAServerThatStopsWithinAReply_whenAsked_thenTheTimeoutIsSaid() throws Exception {
        try (RespClient client = new RespClient(config(), TIMEOUT);
                Socket accepted = still.accept()) {
            accepted.getOutputStream().write("+PONG\r\n$10\r\nab".getBytes(US_ASCII));
            assertThat(client.call("PING").asText()).isEqualTo("PONG");
            assertThatThrownBy(() -> client.call("GET", "key")).hasMessageContaining(SAID);
        }
    }

    @Test
    void givenAServerThatTakesNothing_whenALargeValueIsStored_thenTheTimeoutIsSaid() throws Exception {
        try (RespClient client = new RespClient(config(), TIMEOUT)) {
            assertThatThrownBy(() -> client.set("key", new byte[64 << 20])).hasMessageContaining(SAID);
        }
    }

    @Test
    void givenAServerOfTlsThatStandsStill_whenConnected_thenTheTimeoutIsSaid() throws Exception {
        ClientConfig tls = new ClientConfig("127.0.0.1", still.getLocalPort(), null, ClientTlsContexts.systemDefault());
        assertThatThrownBy(() -> new RespClient(tls, TIMEOUT).close()).hasMessageContaining(SAID);
    }
}
