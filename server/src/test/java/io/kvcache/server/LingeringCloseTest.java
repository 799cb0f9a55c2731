package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// An error that ends a connection while its client is still sending: a system resets a connection that is closed over
/// unread bytes, and throws away there what the client has not read.
@Tag("slow")
final class LingeringCloseTest {

    private static final int TOO_LONG = 100_000;
    private static final int PIECE = 10_000;

    private final TestServer server = TestServer.start(TransportKind.AUTO);

    @AfterEach
    void stop() {
        server.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"ECHO", "GET", "PERSIST"})
    void givenAnArgumentThatIsTooLong_whenSentSlowly_thenAllIsTakenAndTheErrorIsRead(String command) throws Exception {
        String head = "*2\r\n$" + command.length() + "\r\n" + command + "\r\n$" + TOO_LONG + "\r\n";
        assertThat(ask(head, "\r\n"))
                .isEqualTo("-ERR Protocol error: argument of 100000 bytes; it takes up to 65536 each, 4194304 in all,"
                        + " where no value is expected\r\n");
    }

    @ParameterizedTest
    @ValueSource(strings = {"GET /", "GET http://localhost/"})
    void givenARequestLineThatIsTooLong_whenSentSlowly_thenAllIsTakenAndTheErrorIsRead(String head) throws Exception {
        assertThat(ask(head, " HTTP/1.1\r\nHost: localhost\r\n\r\n")).startsWith("HTTP/1.1 414 ");
    }

    /// Sends what is too long between two parts, a piece at a time, as over a network, and reads to the end.
    private String ask(String before, String after) throws IOException {
        byte[] piece = new byte[PIECE];
        Arrays.fill(piece, (byte) 'x');
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            OutputStream out = socket.getOutputStream();
            out.write(before.getBytes(US_ASCII));
            for (int sent = 0; sent < TOO_LONG; sent += PIECE) {
                out.write(piece);
                LockSupport.parkNanos(Duration.ofMillis(5).toNanos());
            }
            out.write(after.getBytes(US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), US_ASCII);
        }
    }
}
