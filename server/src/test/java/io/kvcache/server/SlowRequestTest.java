package io.kvcache.server;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Clients that send a request so slowly that it never ends, with the first or with a later one, while connections
/// that are idle may stay for ever.
final class SlowRequestTest {

    private static final String LM_EXIST = "\3" + "\0".repeat(35) + "k" + " ".repeat(149);
    private static final String PAGE = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n";

    private final ProtocolTestHarness port = new ProtocolTestHarness();
    private final ConnectionRegistry connectionRegistry = EmbeddedConnection.registry(
            new NetLimits(10, Duration.ZERO, Duration.ofSeconds(10)),
            port.test().time());

    @AfterEach
    void close() {
        port.close();
    }

    /// A part that is sent at once, and one that follows slowly.
    record Client(String name, String before, String drip) {
        @Override
        public String toString() {
            return name;
        }
    }

    static List<Client> clients() {
        return List.of(
                new Client("first of RESP", "", "*2\r\n$3\r\nGET\r\n$1"),
                new Client("words", "", "GET some key"),
                new Client("later one of RESP", "PING\r\n", "*2\r\n$3\r\nGET\r\n$1"),
                new Client("value of RESP", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500\r\n", "some bytes"),
                new Client("first of lm", "", LM_EXIST.substring(0, 20)),
                new Client("later one of lm", LM_EXIST, LM_EXIST.substring(0, 20)),
                new Client("value of lm", "\1\0\0\0" + "\1\1\0\0" + LM_EXIST.substring(8), "some bytes"),
                new Client("first of HTTP", "", PAGE.substring(0, 30)),
                new Client("later one of HTTP", PAGE, PAGE.substring(0, 12)),
                new Client("header of HTTP", PAGE, PAGE.substring(0, 30)),
                new Client("behind another of HTTP", PAGE + "G", "ET /"),
                new Client(
                        "body of HTTP",
                        "PUT /v1/objects/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n",
                        "some bytes"));
    }

    private void pass(int seconds) {
        for (int i = 0; i < seconds; i++) {
            port.test().time().advance(Duration.ofSeconds(1));
            connectionRegistry.tick();
        }
    }

    @ParameterizedTest
    @MethodSource("clients")
    void givenARequestThatDrips_whenTheStallTimeIsOver_thenItIsCut(Client client) {
        try (EmbeddedConnection embeddedConnection = port.connect(connectionRegistry)) {
            embeddedConnection.send(client.before());
            for (int i = 0; i < client.drip().length() && embeddedConnection.isOpen(); i++) {
                embeddedConnection.send(client.drip().substring(i, i + 1));
                pass(4);
            }
            pass(10);
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.STALLED_REQUEST)).isEqualTo(1);
    }

    @ParameterizedTest
    @MethodSource("clients")
    void givenARequestThatStopsInTheMiddle_whenTheStallTimeIsOver_thenItIsCut(Client client) {
        try (EmbeddedConnection embeddedConnection = port.connect(connectionRegistry)) {
            embeddedConnection.send(client.before() + client.drip());
            pass(12);
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.STALLED_REQUEST)).isEqualTo(1);
    }

    @Test
    void givenNothingOfTheNextRequest_whenTimePasses_thenTheConnectionStays() {
        for (String answered :
                List.of("PING\r\n", LM_EXIST, PAGE, PAGE + "\r\n", "HEAD /none HTTP/1.1\r\nHost: localhost\r\n\r\n")) {
            try (EmbeddedConnection embeddedConnection = port.connect(connectionRegistry)) {
                embeddedConnection.send(answered);
                pass(100);
                assertThat(embeddedConnection.isOpen()).as(answered).isTrue();
                embeddedConnection.bytes();
                assertThat(embeddedConnection.ask(answered)).as(answered).isNotEmpty();
            }
        }
        assertThat(connectionRegistry.closedCount(CloseReason.CLIENT)).isEqualTo(5);
    }

    @Test
    void givenHeads_whenAnsweredByProblemsAndPages_thenNoBodyFollows() {
        String heads =
                "HEAD /none HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\nGET /none HTTP/1.1\r\nHost: localhost\r\n\r\n";
        try (EmbeddedConnection embeddedConnection = port.connect(connectionRegistry)) {
            String said = new String(
                    embeddedConnection.send(heads.getBytes(ISO_8859_1)).bytes(), ISO_8859_1);

            assertThat(said.split("HTTP/1.1 ", -1)).hasSize(4);
            assertThat(said).containsOnlyOnce("{\"type\"").doesNotContain("\r\n\r\npage");
            assertThat(said).contains("\r\n\r\nHTTP/1.1 200 OK").contains("\r\n\r\nHTTP/1.1 404");
        }
    }
}
