package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.TransportKind;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Clients that ask for more than they read at once.
final class SlowReaderTest {

    private static final int MIB = 1 << 20;
    private static final int REQUESTS = 300;

    @ParameterizedTest
    @EnumSource(names = {"EPOLL", "IO_URING", "NIO"})
    void givenRequestsForMoreThanSocketsHold_whenTheClientReadsAtLast_thenAllComesInOrder(TransportKind transport)
            throws Exception {
        byte[] value = new byte[MIB];
        new Random(3).nextBytes(value);
        try (TestServer server = TestServer.start(transport);
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(20_000);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            out.write("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n".getBytes(US_ASCII));
            out.write(value);
            out.write("\r\n".getBytes(US_ASCII));
            Thread asking = Thread.ofVirtual().start(() -> ask(out));
            assertThat(in.readNBytes(5)).isEqualTo("+OK\r\n".getBytes(US_ASCII));
            for (int i = 0; i < REQUESTS; i++) {
                expect(in, value);
                assertThat(in.readNBytes(4)).isEqualTo("*3\r\n".getBytes(US_ASCII));
                for (int each = 0; each < 3; each++) {
                    expect(in, value);
                }
            }
            asking.join();
            assertThat(server.server().cache().stats().openTables()).isLessThan(8);
        }
    }

    private static void ask(OutputStream out) {
        try {
            for (int i = 0; i < REQUESTS; i++) {
                out.write("GET k\r\nMGET k k k\r\n".getBytes(US_ASCII));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void expect(DataInputStream in, byte[] value) throws IOException {
        assertThat(in.readNBytes(10)).isEqualTo("$1048576\r\n".getBytes(US_ASCII));
        byte[] got = in.readNBytes(MIB + 2);
        assertThat(Arrays.equals(got, 0, MIB, value, 0, MIB)).isTrue();
    }
}
