package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A client that reads as LMCache's native one does: replies of the length it expects, without looking for line ends.
final class NativeLmcacheClientTest {

    private TestServer server = TestServer.start(TransportKind.NIO);

    @AfterEach
    void stop() {
        server.close();
    }

    private static final class Client implements AutoCloseable {

        private final Socket socket;
        private final DataInputStream in;
        private final OutputStream out;

        Client(int port) throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setSoTimeout(60_000);
            socket.setTcpNoDelay(true);
            in = new DataInputStream(socket.getInputStream());
            out = socket.getOutputStream();
        }

        private String fixed(int bytes) throws IOException {
            return new String(in.readNBytes(bytes), US_ASCII);
        }

        private void command(String head, byte[] body) throws IOException {
            out.write(head.getBytes(US_ASCII));
            out.write(body);
            out.write(new byte[] {'\r', '\n'});
            out.flush();
        }

        String set(String key, byte[] value) throws IOException {
            command("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n".formatted(key.length(), key, value.length), value);
            return fixed(5);
        }

        String exists(String key) throws IOException {
            command("*2\r\n$6\r\nEXISTS\r\n$%d\r\n".formatted(key.length()), key.getBytes(US_ASCII));
            return fixed(4);
        }

        String delete(String key) throws IOException {
            command("*2\r\n$3\r\nDEL\r\n$%d\r\n".formatted(key.length()), key.getBytes(US_ASCII));
            return fixed(4);
        }

        /// Empty when it is a miss.
        byte[] get(String key, int expected) throws IOException {
            command("*2\r\n$3\r\nGET\r\n$%d\r\n".formatted(key.length()), key.getBytes(US_ASCII));
            String head = "$" + expected + "\r\n";
            String start = fixed(5);
            if (start.equals("$-1\r\n")) {
                return new byte[0];
            }
            assertThat(start + fixed(head.length() - 5)).isEqualTo(head);
            byte[] value = in.readNBytes(expected);
            assertThat(fixed(2)).isEqualTo("\r\n");
            return value;
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private static byte[] content(long seed, int bytes) {
        byte[] content = new byte[bytes];
        BlockContent.of(0, seed).fill(MemorySegment.ofArray(content));
        return content;
    }

    @ParameterizedTest
    @EnumSource(names = {"EPOLL", "IO_URING", "NIO"})
    void givenEachTransport_whenLargeValuesPass_thenEveryByteIsRight(TransportKind transport) throws IOException {
        TestRequirements.assumeSockets(transport);
        server.close();
        server = TestServer.start(transport);
        try (Client client = new Client(server.port())) {
            byte[] value = content(1, 20_000_001);
            assertThat(client.exists("model@01000000@ab")).isEqualTo(":0\r\n");
            assertThat(client.set("model@01000000@ab", value)).isEqualTo("+OK\r\n");
            assertThat(client.exists("model@01000000@ab")).isEqualTo(":1\r\n");
            assertThat(client.get("model@01000000@ab", value.length)).isEqualTo(value);
            assertThat(client.delete("model@01000000@ab")).isEqualTo(":1\r\n");
            assertThat(client.get("model@01000000@ab", value.length)).isEmpty();
        }
    }

    @Test
    @Tag("slow")
    void givenEightWorkersAndMoreThanFits_whenTheyRun_thenNobodyIsDesynchronised() throws Exception {
        try (ExecutorService workers = Executors.newFixedThreadPool(8)) {
            Future<?>[] running = new Future<?>[8];
            for (int worker = 0; worker < running.length; worker++) {
                long own = worker;
                running[worker] = workers.submit(() -> work(own));
            }
            for (Future<?> each : running) {
                each.get();
            }
        }
    }

    private @Nullable Void work(long worker) throws IOException {
        int bytes = 2 << 20;
        try (Client client = new Client(server.port())) {
            for (int i = 0; i < 40; i++) {
                int which = (int) (worker * 7 + i) % 150;
                assertThat(client.set("chunk" + which, content(which, bytes))).isEqualTo("+OK\r\n");
                int older = (int) (worker * 7 + i * 3L) % 150;
                if (client.exists("chunk" + older).equals(":1\r\n")) {
                    byte[] got = client.get("chunk" + older, bytes);
                    assertThat(got.length == 0 || Arrays.equals(got, content(older, bytes)))
                            .isTrue();
                }
            }
        }
        return null;
    }
}
